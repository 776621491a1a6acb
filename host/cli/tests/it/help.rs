//! What the command says of itself.

use crate::command::run;

#[test]
fn help_and_version_are_no_failure() {
    for arguments in [
        &["--help"][..],
        &["-h"],
        &["help"],
        &["run", "--help"],
        &["run", "-h"],
        &["help", "run"],
        &["--version"],
        &["-V"],
        &["run", "--version"],
    ] {
        let ended = run(arguments).with_status(0);
        assert_eq!(ended.errors, "", "{arguments:?}");
        assert!(ended.output.contains("copyist"), "{arguments:?}");
    }
    let version = run(["--version"]).with_status(0);
    assert_eq!(
        version.output,
        format!("copyist {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn the_help_of_run_names_every_option_and_every_status() {
    let help = run(["run", "--help"]).with_status(0);
    for word in [
        "--dir <HOST[::GUEST]>",
        "--ro-dir <HOST[::GUEST]>",
        "--endpoint <NAME[:r|:w|:rw]=END>",
        "tcp:HOST:PORT",
        "--env <NAME[=VALUE]>",
        "--timeout <DURATION>",
        "--max-bytes <N>",
        "--grant <GRANT>",
        "special-mode-bits",
        "--report <FORMAT>",
        "json",
        "124",
        "125",
        "134",
        "Examples:",
    ] {
        assert!(help.output.contains(word), "{word} is not there");
    }
}
