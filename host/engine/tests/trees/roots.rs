//! What the two roots may be.

use std::fs;
use std::path::Path;

use copyist_engine::{
    Base, Cancel, Cause, Errno, Location, Side, Symlinks, TreeOptions, TreeRequest,
    ambient_authority, copy_tree,
};

use crate::facts::{self, BYTES};
use crate::support::Place;

fn made() -> Place {
    let place = Place::new();
    place.write("from/sub/file", "text");
    place.write("from/other", "more");
    place
}

#[test]
fn a_root_may_be_named_in_any_way() {
    let place = made();
    place.link("from", "link");
    place.dir("there");
    let options = TreeOptions::default();
    for (from, to) in [
        ("from", "a"),
        ("from/", "b"),
        ("from/.", "c"),
        ("./from", "d/"),
        ("from/sub/..", "e"),
        ("link/", "f"),
        ("link/.", "g"),
        ("from", "there/."),
        ("from//", "there//"),
    ] {
        let summary = place.copy(from, to, &options).unwrap();
        assert_eq!(
            (summary.files, summary.directories),
            (2, 2),
            "{from} to {to}"
        );
        facts::assert_same(&place.path("from"), &place.path(to), BYTES);
    }
    let error = place.copy("from", "missing/.", &options).unwrap_err();
    assert_eq!(error.cause, Cause::Io(Side::Destination, Errno::NOENT));
    let error = place.copy("missing", "x", &options).unwrap_err();
    assert_eq!(error.cause, Cause::Io(Side::Source, Errno::NOENT));
    assert!(!place.path("x").exists());
}

/// A whole handle, into another.
#[test]
fn a_root_may_be_a_whole_handle() {
    let (from, to) = (made(), Place::new());
    let request = TreeRequest {
        source: from.at("."),
        destination: to.at("."),
        options: TreeOptions::default(),
    };
    let summary = copy_tree(request, &Cancel::new()).unwrap();
    assert_eq!(summary.files, 2);
    facts::assert_same(&from.path(""), &to.path(""), BYTES);
}

#[test]
fn a_root_may_be_ambient() {
    let place = made();
    let at = |name: &str| Location {
        base: Base::Ambient(ambient_authority()),
        path: place.path(name),
        follow: false,
    };
    let request = TreeRequest {
        source: at("from"),
        destination: at("to"),
        options: TreeOptions::default(),
    };
    copy_tree(request, &Cancel::new()).unwrap();
    facts::assert_same(&place.path("from"), &place.path("to"), BYTES);
}

#[test]
fn a_root_may_be_no_directory() {
    let place = made();
    place.link("nowhere", "link");
    let options = TreeOptions::default();
    let summary = place.copy("from/other", "file", &options).unwrap();
    assert_eq!((summary.files, summary.directories), (1, 0));
    assert_eq!(place.read("file"), b"more");
    let summary = place.copy("link", "copy-of-link", &options).unwrap();
    assert_eq!(summary.links, 1);
    assert_eq!(
        fs::read_link(place.path("copy-of-link")).unwrap(),
        Path::new("nowhere")
    );
    let error = place.copy("from/other", "from/sub", &options).unwrap_err();
    assert_eq!(error.cause, Cause::Io(Side::Destination, Errno::ISDIR));
    let error = place.copy("from/other", ".", &options).unwrap_err();
    assert_eq!(error.cause, Cause::Io(Side::Destination, Errno::ISDIR));
    let error = place
        .copy("from/other", "from/other", &options)
        .unwrap_err();
    assert_eq!(error.cause, Cause::SameFile);
}

/// <https://github.com/uutils/coreutils/issues/3016>, <https://github.com/AvianFlu/ncp/issues/113>,
/// <https://github.com/shelljs/shelljs/issues/644>: refused before anything is made, by whatever name.
#[test]
fn uutils_3016_ncp_113_shelljs_644_a_tree_is_not_copied_into_itself() {
    let place = made();
    place.link("from/sub", "side-door");
    let options = TreeOptions::default();
    let before = facts::of(&place.path("from"), BYTES);
    for (from, to) in [
        ("from", "from"),
        ("from", "from/."),
        ("from", "from/new"),
        ("from", "from/sub"),
        ("from", "from/sub/new"),
        ("from", "side-door/new"),
        ("from/.", "from/sub/new"),
        (".", "from/new"),
        (".", "new"),
        ("from/sub/..", "side-door/../new"),
    ] {
        let error = place.copy(from, to, &options).unwrap_err();
        assert_eq!(error.cause, Cause::SameFile, "{from} to {to}");
    }
    assert_eq!(facts::of(&place.path("from"), BYTES), before);
    assert_eq!(place.names(""), ["from", "side-door"]);
    // The other way round is no trouble.
    place.copy("from/sub", ".", &options).unwrap();
    assert_eq!(place.read("file"), b"text");
}

#[test]
fn no_path_leads_out_of_a_handle() {
    let outer = made();
    outer.dir("inner/sub");
    let handle = std::sync::Arc::new(fs::File::open(outer.path("inner")).unwrap());
    let at = |path: &str| Location {
        base: Base::Beneath(handle.clone()),
        path: path.into(),
        follow: true,
    };
    outer.link("../from", "inner/out");
    for (from, to) in [
        ("../from", "x"),
        ("out", "x"),
        ("out/sub", "x"),
        ("/etc", "x"),
        ("sub", "../x"),
        ("sub", "out/x"),
        ("sub", "/tmp/x"),
    ] {
        let request = TreeRequest {
            source: at(from),
            destination: at(to),
            options: TreeOptions::default(),
        };
        let error = copy_tree(request, &Cancel::new()).unwrap_err();
        assert!(
            matches!(error.cause, Cause::Io(_, Errno::PERM)),
            "{from} to {to}: {error}"
        );
    }
    assert_eq!(outer.names(""), ["from", "inner"]);
    assert_eq!(outer.names("from"), ["other", "sub"]);
}

/// A link in the source that leads to where the copy goes: it would be copied for ever.
#[test]
fn what_is_being_made_is_not_copied_by_way_of_a_link() {
    let place = Place::new();
    place.dir("from/sub/deep");
    place.link("../../../to/sub", "from/sub/deep/link");
    let options = TreeOptions {
        symlinks: Symlinks::Follow,
        keep_going: true,
        ..TreeOptions::default()
    };
    let (outcome, report) = place.copy_by(1, "from", "to", &options);
    assert_eq!(outcome.unwrap().failed, 1);
    assert_eq!(report.failed(0, 1)[0].cause, Cause::SameFile);
    // And a root that is a link is looked at as what it leads to.
    place.link("from", "link");
    let error = place.copy("link", "from/new", &options).unwrap_err();
    assert_eq!(error.cause, Cause::SameFile);
    assert_eq!(place.names("from"), ["sub"]);
}
