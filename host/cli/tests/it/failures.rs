//! What the host cannot run: status 125, and one line that says what to do.

use std::fs;

use copyist_test_artifacts::{CLI_END, TRANSFER_PATH};

use crate::command::{Place, run};

/// The one line of a run that could not be.
#[track_caller]
fn complaint(arguments: &[&str]) -> String {
    let ended = run([&["run"], arguments].concat()).with_status(125);
    assert_eq!(ended.output, "");
    ended.complaint().to_owned()
}

/// A file that is to be run.
fn file(content: &[u8]) -> (Place, String) {
    let place = Place::new();
    fs::write(place.path("file.wasm"), content).unwrap();
    let path = format!("{}/file.wasm", place.host());
    (place, path)
}

#[test]
fn a_file_that_is_not_there() {
    let said = complaint(&["nowhere/absent.wasm"]);
    assert!(
        said.contains("nowhere/absent.wasm") && said.contains("No such file"),
        "{said}"
    );
    let place = Place::new();
    let said = complaint(&[place.host()]);
    assert!(said.contains(place.host()), "{said}");
}

#[test]
fn a_file_that_is_no_component() {
    for content in [
        &b""[..],
        b"\0asm",
        b"#!/bin/sh\nexit 0\n",
        // A module, as other targets of Rust make them.
        b"\0asm\x01\0\0\0",
    ] {
        let (_place, path) = file(content);
        let said = complaint(&[&path]);
        assert!(
            said.contains(&path) && said.contains("wasm32-wasip2"),
            "{said}"
        );
    }
}

#[test]
fn a_component_that_is_broken() {
    let whole = fs::read(TRANSFER_PATH).unwrap();
    for content in [&b"\0asm\x0d\0\x01\0garbage"[..], &whole[..whole.len() / 2]] {
        let (_place, path) = file(content);
        let said = complaint(&[&path]);
        assert!(said.contains(&path), "{said}");
    }
}

#[test]
fn a_component_that_is_no_program() {
    // The smallest component: nothing in, nothing out.
    let (_place, path) = file(b"\0asm\x0d\0\x01\0");
    let said = complaint(&[&path]);
    assert!(
        said.contains(&path) && said.contains("wasi:cli/run"),
        "{said}"
    );
}

/// A component that imports one function of one interface, and nothing else.
fn importing(interface: &str, function: &str) -> Vec<u8> {
    let length = |bytes: &[u8]| u8::try_from(bytes.len()).unwrap();
    let name = |text: &str| [&[0, length(text.as_bytes())], text.as_bytes()].concat();
    // An instance type of two: the type of a function without parameters and results, exported.
    let types = [
        &[1, 0x42, 2, 1, 0x40, 0, 1, 0, 4][..],
        &name(function),
        &[1, 0],
    ]
    .concat();
    // An instance of that type.
    let imports = [&[1][..], &name(interface), &[5, 0]].concat();
    let section = |id, content: &[u8]| [&[id, length(content)], content].concat();
    [
        &b"\0asm\x0d\0\x01\0"[..],
        &section(7, &types),
        &section(10, &imports),
    ]
    .concat()
}

#[test]
fn a_component_that_needs_what_no_host_or_a_later_one_has() {
    for (interface, function) in [
        ("wasi:http/types@0.2.0", "send"),
        ("copyist:copy/copy@0.3.0", "transfer"),
        ("wasi:cli/run@1.0.0", "run"),
        ("wasi:cli/exit@0.2.0", "leave"),
        ("copyist:copy/copy@0.2.9", "transfer-all"),
        ("copyist:copy/unheard-of@0.2.0", "transfer"),
    ] {
        let (_place, path) = file(&importing(interface, function));
        let said = complaint(&[&path]);
        assert!(said.contains(&path) && said.contains(interface), "{said}");
    }
}

#[test]
fn a_directory_that_is_not_there() {
    let place = Place::with(b"bytes");
    for option in ["--dir", "--ro-dir"] {
        let absent = format!("{}/absent", place.host());
        let said = complaint(&[option, &absent, CLI_END, "return"]);
        assert!(said.contains(option) && said.contains(&absent), "{said}");
        let file = format!("{}/from", place.host());
        let said = complaint(&[option, &file, CLI_END, "return"]);
        assert!(said.contains(option) && said.contains(&file), "{said}");
    }
}

#[test]
fn a_command_line_that_is_wrong() {
    for arguments in [
        &[][..],
        &["walk"],
        &["run"],
        &["run", "--dir", "::x", CLI_END],
        &["run", "--timeout", "soon", CLI_END],
        &["run", "--max-bytes", "many", CLI_END],
        &["run", "--grant", "everything", CLI_END],
        &["run", "--report", "xml", CLI_END],
        &["run", "--unknown", CLI_END],
    ] {
        let ended = run(arguments).with_status(125);
        assert_eq!(ended.output, "", "{arguments:?}");
        assert!(ended.errors.contains("--help"), "{arguments:?}");
    }
}
