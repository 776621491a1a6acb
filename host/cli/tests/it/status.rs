//! The exit status: the guest's own, or the host's word for what became of it.

use copyist_test_artifacts::{CLI_END, CLI_ENVIRONMENT, CLI_IMPORT, TRANSFER_PATH};

use crate::command::{Place, run};

macro_rules! assert_test_exists {
    ($name:ident) => {
        #[allow(unused_imports, reason = "that it exists is enough")]
        use self::$name as _;
    };
}
copyist_test_artifacts::foreach_cli_guest!(assert_test_exists);

#[test]
fn cli_end() {
    for (words, status) in [
        (&["exit", "0"][..], 0),
        (&["exit", "1"], 1),
        (&["exit", "7"], 7),
        (&["exit", "255"], 255),
        (&["return"], 0),
        (&["fail"], 1),
    ] {
        let ended = run([&["run", CLI_END], words].concat()).with_status(status);
        assert_eq!((&*ended.output, &*ended.errors), ("", ""), "{words:?}");
    }
}

#[test]
fn a_trap_is_an_abort() {
    let ended = run(["run", CLI_END, "trap"]).with_status(134);
    let said: Vec<_> = ended.errors.lines().collect();
    assert!(said.iter().any(|line| line.contains("as the test wants")));
    let last = said.last().unwrap();
    assert!(
        last.starts_with("copyist: ") && last.contains("trapped"),
        "{last}"
    );
}

#[test]
fn cli_environment() {
    let ended = run([
        "run",
        "--env",
        "A=1",
        "--env=B=x=y z",
        CLI_ENVIRONMENT,
        "one",
        "--two",
        "",
        "-h",
    ])
    .with_status(0);
    let lines: Vec<_> = ended.output.lines().collect();
    assert_eq!(
        lines,
        [
            "argument one",
            "argument --two",
            "argument ",
            "argument -h",
            "variable A=1",
            "variable B=x=y z",
        ]
    );
}

#[test]
fn cli_import() {
    let ended = run(["run", CLI_IMPORT]).with_status(125);
    let complaint = ended.complaint();
    assert!(complaint.contains("nobody:has/things@1.2.3"), "{complaint}");
    assert!(complaint.contains(CLI_IMPORT), "{complaint}");
    // And what would be there.
    assert!(complaint.contains("copyist:copy 0.2"), "{complaint}");
    assert_eq!(ended.output, "");
}

#[test]
fn a_copy_that_fails_is_the_guests_business() {
    let place = Place::with(b"bytes");
    let ended = run([
        "run",
        "--dir",
        &place.under("w"),
        TRANSFER_PATH,
        "w/absent",
        "w/to",
    ]);
    let ended = ended.with_status(0);
    assert!(ended.output.starts_with("err cause=no-entry side=source"));
    assert_eq!(ended.errors, "");
}
