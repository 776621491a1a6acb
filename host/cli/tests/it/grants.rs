//! What the command line grants, and that nothing else is.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use copyist_test_artifacts::{CLI_ENVIRONMENT, READ_FILE, TRANSFER_PATH};

use crate::command::{Ended, Place, copyist, run};

/// Copies with these options of the command, and tells what the guest said.
fn copy(options: &[&str], words: &[&str]) -> String {
    let ended = run([&["run"], options, &[TRANSFER_PATH], words].concat()).with_status(0);
    assert_eq!(ended.errors, "");
    ended.output.clone()
}

#[test]
fn a_directory_is_granted_under_its_own_name_or_another() {
    let place = Place::with(b"bytes");
    let host = place.host();
    let said = copy(
        &["--dir", host],
        &[&format!("{host}/from"), &format!("{host}/to")],
    );
    assert!(said.starts_with("ok bytes=5 "), "{said}");
    place.assert_holds("to", b"bytes");

    let said = copy(
        &[&format!("--dir={}", place.under("/data"))],
        &["/data/from", "/data/two"],
    );
    assert!(said.starts_with("ok bytes=5 "), "{said}");
    place.assert_holds("two", b"bytes");

    let ended =
        Ended::of(copyist(["run", "--dir", ".", TRANSFER_PATH, "from", "three"]).current_dir(host));
    ended.with_status(0);
    place.assert_holds("three", b"bytes");
}

#[test]
fn a_read_only_directory_is_copied_from_and_not_to() {
    let place = Place::with(b"bytes");
    let other = Place::new();
    let options = ["--ro-dir", &place.under("in"), "--dir", &other.under("out")];
    let said = copy(&options, &["in/from", "out/to", "in/from", "in/to"]);
    let said: Vec<_> = said.lines().collect();
    assert!(said[0].starts_with("ok bytes=5 "), "{said:?}");
    assert!(
        said[1].starts_with("err cause=not-permitted side=destination "),
        "{said:?}"
    );
    other.assert_holds("to", b"bytes");
    assert_eq!(place.names(), ["from"]);
}

#[test]
fn nothing_is_granted_unless_it_is_said() {
    let place = Place::with(b"bytes");
    let from = format!("{}/from", place.host());
    let said = run(["run", READ_FILE, &from]).with_status(0);
    assert!(said.output.starts_with("err cause=no-entry "));
    let said = Ended::of(copyist(["run", CLI_ENVIRONMENT]).env("SECRET", "value")).with_status(0);
    assert_eq!(said.output, "");
    let other = place.under("w");
    let said = run(["run", "--dir", &other, CLI_ENVIRONMENT]).with_status(0);
    assert_eq!(said.output, "directory w\n");
}

#[test]
fn a_variable_without_a_value_has_the_hosts() {
    let mut command = copyist(["run", "--env", "A", "--env", "B=given", CLI_ENVIRONMENT]);
    let ended = Ended::of(command.env("A", "the host's").env("B", "not this"));
    assert_eq!(
        ended.with_status(0).output,
        "variable A=the host's\nvariable B=given\n"
    );

    let ended = run(["run", "--env", "ABSENT", CLI_ENVIRONMENT]).with_status(125);
    let complaint = ended.complaint();
    assert!(
        complaint.contains("ABSENT") && complaint.contains("ABSENT=VALUE"),
        "{complaint}"
    );
}

#[test]
fn a_bound_on_bytes_is_one_for_all_copies() {
    let place = Place::with(&[7; 1000]);
    let dir = place.under("w");
    let words = ["w/from", "w/one", "w/from", "w/two", "w/from", "w/three"];
    for bound in ["2000", "2kB", "2999"] {
        for name in ["one", "two"] {
            let _ = fs::remove_file(place.path(name));
        }
        let said = copy(&["--dir", &dir, "--max-bytes", bound], &words);
        let said: Vec<_> = said
            .lines()
            .map(|line| line.split(' ').next().unwrap())
            .collect();
        assert_eq!(said, ["ok", "ok", "err"], "{bound}");
        assert_eq!(place.names(), ["from", "one", "two"]);
    }
    let said = copy(
        &["--dir", &dir, "--max-bytes", "999"],
        &["w/from", "w/four"],
    );
    assert!(said.starts_with("err cause=limit:total-bytes "), "{said}");
    let said = copy(
        &["--dir", &dir, "--max-bytes", "1KiB"],
        &["w/from", "w/four"],
    );
    assert!(said.starts_with("ok "), "{said}");
    // A read counts.
    let ended = run([
        "run",
        "--dir",
        &dir,
        "--max-bytes",
        "999",
        READ_FILE,
        "w/from",
    ]);
    let ended = ended.with_status(0);
    assert!(ended.output.starts_with("err cause=limit:total-bytes "));
}

#[test]
fn special_bits_are_kept_where_it_is_granted() {
    for (options, mode, lost) in [
        (&[][..], 0o755, "lost=mode"),
        (&["--grant", "special-mode-bits"], 0o4755, "lost=-"),
    ] {
        let place = Place::with(b"bytes");
        fs::set_permissions(place.path("from"), fs::Permissions::from_mode(0o4755)).unwrap();
        let dir = place.under("w");
        let options = [options, &["--dir", &dir]].concat();
        let said = copy(&options, &["w/from", "w/to", "--preserve=mode"]);
        assert!(said.starts_with("ok ") && said.contains(lost), "{said}");
        let made = fs::metadata(place.path("to")).unwrap().permissions().mode();
        assert_eq!(made & 0o7777, mode, "{options:?}");
    }
}
