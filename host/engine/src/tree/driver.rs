//! A tree on the thread of its caller.

use std::sync::Arc;
use std::sync::mpsc::channel;

use super::part::{Executor, Part};
use super::request::TreeRequest;
use super::shared::Tree;
use crate::cancel::Cancel;
use crate::environment::Environment;
use crate::error::{Cause, Error};
use crate::summary::Summary;
use crate::sys::FatalSignalsBlocked;

/// Nobody else.
struct Alone;

impl Executor for Alone {
    fn wants_more(&self) -> bool {
        false
    }

    fn execute(&self, part: Part) {
        part.run_to_end();
    }
}

/// Copies a tree on this thread and returns when it has ended. A [`Pool`](crate::Pool) does it by
/// several.
///
/// It blocks while the kernel works, and waits for no peer: no FIFO, socket or device is opened. A
/// cancel is looked at between system calls, takes back the entry that is under way, and leaves those
/// that are finished.
///
/// # Errors
///
/// The first failure of an entry, unless [`keep_going`](crate::TreeOptions::keep_going) is set;
/// [`Cause::SameFile`] where the destination is the source or lies in it, before anything is made; and
/// what ends a tree as a whole: a limit, a cancel, the time given, a sync that failed at the end.
pub fn copy_tree(request: TreeRequest, cancel: &Cancel) -> Result<Summary, Error> {
    copy_tree_in(&Environment::native(), request, cancel)
}

/// As [`copy_tree`], on another system layer.
///
/// # Errors
///
/// As [`copy_tree`].
pub fn copy_tree_in(
    environment: &Environment,
    request: TreeRequest,
    cancel: &Cancel,
) -> Result<Summary, Error> {
    let (tell, outcome) = channel();
    let done = Box::new(move |answer| {
        let _ = tell.send(answer);
    });
    let _signals = (!cancel.is_cancelled()).then(FatalSignalsBlocked::new);
    let tree = Tree::new(
        environment.clone(),
        request,
        cancel.clone(),
        Arc::new(Alone),
        done,
    );
    tree.first_part().run_to_end();
    outcome.recv().unwrap_or_else(|_| {
        Err(Error {
            cause: Cause::Panicked,
            path: None,
            done: Summary::default(),
        })
    })
}
