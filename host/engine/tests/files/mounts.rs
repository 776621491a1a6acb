//! One file system by two mounts: two devices to some calls, one to others.

use std::fs::File;

use copyist_engine::{Destination, Mechanism, Options, Reflink};

use crate::support::{
    Place, WRITE_MODES, assert_same, at, copy, every_way, handle, is_root, kernel, other, pattern,
    places, skipped,
};

/// Whether the kernel shares storage between these two, by its own word.
fn shares(place: &Place, other_mount: &File) -> bool {
    let from = place.open("from");
    let flags = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
    let to = rustix::fs::openat(other_mount, "probe", flags, 0o600.into()).unwrap();
    let answer = rustix::fs::ioctl_ficlone(to, &*from);
    rustix::fs::unlinkat(other_mount, "probe", rustix::fs::AtFlags::empty()).unwrap();
    answer.is_ok()
}

// https://github.com/openzfs/zfs/issues/15345, https://github.com/cargo-bins/reflink-copy/issues/60:
// whether files can be shared was told from what they are mounted as. Only the call tells.
#[test]
fn zfs_15345_files_are_shared_between_mounts_where_the_kernel_shares_them() {
    if !is_root("a bind mount") {
        return;
    }
    for place in places() {
        let bytes = pattern(100_000);
        place.write("from", &bytes);
        let mount = match kernel::bind(&place.path("")) {
            Ok(mount) => mount,
            Err(error) => return skipped(&format!("a bind mount: {error}")),
        };
        let can_share = shares(&place, &mount);
        let mount = handle(mount);
        for (write_mode, existing) in WRITE_MODES
            .into_iter()
            .flat_map(|mode| [(mode, false), (mode, true)])
        {
            for (way, tuning) in every_way() {
                for reflink in [Reflink::Auto, Reflink::Always, Reflink::Never] {
                    let _ = std::fs::remove_file(place.path("to"));
                    if existing {
                        place.write("to", other(200_000));
                    }
                    let options = Options {
                        write_mode,
                        reflink,
                        tuning,
                        ..Options::default()
                    };
                    let to = Destination::Path(at(&mount, "to"));
                    let what = format!("{}: {way}, {options:?}", place.name);
                    match copy(place.source("from"), to, &options) {
                        Ok(summary) => {
                            assert_same(&place.read("to"), &bytes, &what);
                            let may_share = reflink != Reflink::Never
                                && !tuning.force_fallback
                                && tuning.only.is_none_or(|only| only == Mechanism::Clone);
                            let cloned = summary.method == Some(Mechanism::Clone);
                            assert_eq!(cloned, can_share && may_share, "{what}: {summary:?}");
                        }
                        Err(_) => {
                            let is_asked_for = reflink == Reflink::Always || tuning.only.is_some();
                            assert!(is_asked_for, "{what}");
                        }
                    }
                }
            }
        }
    }
}
