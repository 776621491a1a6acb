//! The example works as it stands.

use std::fs;
use std::process::Command;

#[test]
fn the_plugin_copies_under_it() {
    let plugin = copyist_guest_build::build("copyist-example-plugin", &[]).unwrap();
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("to")).unwrap();
    fs::write(place.path().join("file"), "content").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_copyist-example-embedder"))
        .arg(&plugin[0].path)
        .arg(place.path())
        // The first argument is the guest's own name.
        .args(["plugin", "/to", "/file"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(fs::read(place.path().join("to/file")).unwrap(), b"content");
}
