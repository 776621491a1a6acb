//! The core below WIT, for hosts that implement WASI themselves: open files and rights in, tickets
//! out.

use std::fs::File;
use std::sync::Arc;

use copyist_wasmtime::engine::{
    Base, Cause, Destination, Errno, Grants, Handle, Limit, Location, Options, Preserve, Request,
    Side, Source, Summary, Window,
};
use copyist_wasmtime::{Copier, CopyCtx, CopyRequest, Ended, ReadRequest, Rights};

use crate::host::runtime;
use crate::place::{Place, pattern};
use crate::system::{Gate, PATIENCE};

const READ: Rights = Rights {
    write: false,
    ..Rights::ALL
};
const WRITE: Rights = Rights {
    read: false,
    ..Rights::ALL
};
const LOOK: Rights = Rights {
    write: false,
    mutable: false,
    ..Rights::ALL
};

fn copier() -> Copier {
    CopyCtx::default().copier().clone()
}

fn open(place: &Place, name: &str) -> Handle {
    Arc::new(
        File::options()
            .read(true)
            .write(true)
            .open(place.path(name))
            .unwrap(),
    )
}

fn at(place: &Place, name: &str) -> Location {
    Location {
        base: Base::Beneath(Arc::new(File::open(place.root()).unwrap())),
        path: name.into(),
        follow: true,
    }
}

fn request(source: Source, destination: Destination) -> CopyRequest {
    CopyRequest {
        request: Request {
            source,
            destination,
            options: Options::default(),
        },
        source_rights: LOOK,
        destination_rights: WRITE,
    }
}

fn by_path(place: &Place) -> CopyRequest {
    request(
        Source::Path(at(place, "from")),
        Destination::Path(at(place, "to")),
    )
}

fn by_descriptor(place: &Place) -> CopyRequest {
    request(
        Source::File(open(place, "from")),
        Destination::File(open(place, "to")),
    )
}

/// On this thread, and as a future.
fn both(request: &CopyRequest, copier: &Copier) -> [Result<Summary, Cause>; 2] {
    let ended = |ended| match ended {
        Ended::With(outcome) => {
            outcome.map_err(|error: copyist_wasmtime::engine::Error| error.cause)
        }
        Ended::Interrupted => panic!("nobody interrupts"),
    };
    [
        ended(copier.submit(request.clone()).wait()),
        ended(runtime().block_on(copier.submit(request.clone()))),
    ]
}

#[test]
fn open_files_and_paths_are_copied() {
    for make in [by_path, by_descriptor] {
        let place = Place::with("from", &pattern(1000));
        place.write("to", b"old");
        for outcome in both(&make(&place), &copier()) {
            assert_eq!(outcome.unwrap().bytes, 1000);
        }
        place.assert_holds("to", &pattern(1000));
    }
}

#[test]
fn the_rights_count_and_not_what_the_open_file_would_allow() {
    for make in [by_path, by_descriptor] {
        let place = Place::with("from", &pattern(1000));
        place.write("to", b"old");
        let no_right_to = |source_rights, destination_rights, cause: Cause| {
            let request = CopyRequest {
                source_rights,
                destination_rights,
                ..make(&place)
            };
            for outcome in both(&request, &copier()) {
                assert_eq!(outcome, Err(cause.clone()));
                place.assert_holds("to", b"old");
            }
        };
        let unreadable = Cause::Io(Side::Source, Errno::BADF);
        no_right_to(WRITE, WRITE, unreadable.clone());
        no_right_to(WRITE, LOOK, unreadable);
        no_right_to(READ, READ, Cause::Io(Side::Destination, Errno::BADF));
        no_right_to(READ, LOOK, Cause::Io(Side::Destination, Errno::PERM));
    }
}

#[test]
fn what_is_refused_names_the_path() {
    let place = Place::with("from", b"bytes");
    let error = |request| match copier().submit(request).wait() {
        Ended::With(Err(error)) => error,
        other => panic!("{other:?}"),
    };
    let by_path = |source_rights, destination_rights| CopyRequest {
        source_rights,
        destination_rights,
        ..by_path(&place)
    };
    assert_eq!(error(by_path(WRITE, WRITE)).path, Some("from".into()));
    assert_eq!(error(by_path(READ, LOOK)).path, Some("to".into()));
    place.write("to", b"old");
    assert_eq!(
        error(CopyRequest {
            source_rights: WRITE,
            ..by_descriptor(&place)
        })
        .path,
        None
    );
}

#[test]
fn a_request_cannot_grant_itself_anything() {
    let place = Place::with("from", &pattern(1000));
    place.set_mode("from", 0o4755);
    let quota = Arc::new(copyist_wasmtime::engine::Quota::new(1 << 40));
    let mut request = by_path(&place);
    request.request.options.preserve = Preserve::MODE;
    request.request.options.grants = Grants {
        special_mode_bits: true,
        ..Grants::default()
    };
    request.request.options.limits.total = Some(quota.clone());
    let ctx = CopyCtx::builder().max_bytes(1000).build();
    for outcome in both(&request, ctx.copier()) {
        outcome.unwrap();
        assert_eq!(place.mode("to"), 0o755);
    }
    assert_eq!(quota.left(), 1 << 40, "it is not the embedder's");
    let ctx = CopyCtx::builder().max_bytes(999).build();
    request.request.options.limits.bytes = Some(1 << 40);
    for outcome in both(&request, ctx.copier()) {
        assert_eq!(outcome, Err(Cause::Limit(Limit::Bytes)));
    }
}

#[test]
fn whole_files_are_read() {
    let place = Place::with("from", "bytes: é".as_bytes());
    let request = |rights, window| ReadRequest {
        source: Source::File(open(&place, "from")),
        rights,
        window,
        limit: u64::MAX,
    };
    let copier = copier();
    let bytes = |request| match copier.submit_read(request).wait() {
        Ended::With(outcome) => outcome.map_err(|error| error.cause),
        Ended::Interrupted => panic!("nobody interrupts"),
    };
    let text = |request| match runtime().block_on(copier.submit_read_text(request)) {
        Ended::With(outcome) => outcome.map_err(|error| error.cause),
        Ended::Interrupted => panic!("nobody interrupts"),
    };
    let part = Window {
        source_offset: 7,
        length: Some(1),
        destination_offset: 0,
    };
    assert_eq!(bytes(request(LOOK, None)), Ok("bytes: é".into()));
    assert_eq!(bytes(request(LOOK, Some(part))), Ok(vec![0xc3]));
    assert_eq!(text(request(LOOK, None)), Ok("bytes: é".into()));
    assert_eq!(text(request(LOOK, Some(part))), Err(Cause::NotUtf8));
    let denied = Cause::Io(Side::Source, Errno::BADF);
    assert_eq!(bytes(request(WRITE, None)), Err(denied.clone()));
    assert_eq!(text(request(WRITE, None)), Err(denied));
}

#[test]
fn a_ticket_cancels() {
    let place = Place::with("from", &pattern(1000));
    let gate = Gate::default();
    let ctx = CopyCtx::builder().pool(gate.system().pool()).build();
    let ticket = ctx.copier().submit(by_path(&place));
    gate.wait_until_reached();
    ticket.cancel();
    gate.open();
    match ticket.wait() {
        Ended::With(Err(error)) => assert_eq!(error.cause, Cause::Cancelled),
        other => panic!("{other:?}"),
    }
    assert_eq!(place.names(), ["from"]);
}

#[test]
fn as_many_copies_are_open_as_may_be() {
    let place = Place::with("from", &pattern(1000));
    let gate = Gate::default();
    let ctx = CopyCtx::builder()
        .pool(gate.system().pool())
        .max_copies(2)
        .build();
    let copier = ctx.copier();
    // One under way, and one that waits for the only thread.
    let two = [(); 2].map(|()| copier.submit(by_path(&place)));
    gate.wait_until_reached();
    assert_eq!(copier.interrupt_handle().in_flight(), 2);
    match copier.submit(by_path(&place)).wait() {
        Ended::With(Err(error)) => assert_eq!(error.cause, Cause::Limit(Limit::Copies)),
        other => panic!("{other:?}"),
    }
    // Another store has places of its own.
    let other = CopyCtx::builder().max_copies(1).build();
    assert!(matches!(
        other.copier().submit(by_path(&place)).wait(),
        Ended::With(Ok(_))
    ));
    gate.open();
    for ticket in two {
        assert!(matches!(ticket.wait(), Ended::With(Ok(_))));
    }
    assert!(copier.interrupt_handle().wait_until_idle(PATIENCE));
    assert!(matches!(
        copier.submit(by_path(&place)).wait(),
        Ended::With(Ok(_))
    ));
}
