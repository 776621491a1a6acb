//! Bytes through pipes and sockets: by the engine, and by the loops that it is compared with.

pub(crate) mod counting;
pub(crate) mod ends;
pub(crate) mod engine;
pub(crate) mod loops;
mod peer;
pub(crate) mod rounds;
