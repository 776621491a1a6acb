//! The contract, as Rust. The handles and errors of WASI are those of the `wasip2` crate, so that
//! who opened something by it can copy it. `wit` is a link to the contract at the root, which the
//! published crate has a copy of.

#![allow(
    missing_docs,
    unsafe_code,
    reason = "generated: the calls of the component model, and what the contract leaves to a name"
)]

wit_bindgen::generate!({
    path: "wit",
    world: "imports",
    with: {
        "wasi:clocks/wall-clock@0.2.0": wasip2::clocks::wall_clock,
        "wasi:filesystem/types@0.2.0": wasip2::filesystem::types,
        "wasi:io/error@0.2.0": wasip2::io::error,
        "wasi:io/poll@0.2.0": wasip2::io::poll,
        "wasi:io/streams@0.2.0": wasip2::io::streams,
    },
    generate_all,
    additional_derives: [PartialEq, Eq],
    // These hold handles, which do not compare.
    additional_derives_ignore: ["destination", "held-destination", "held-source", "location", "source"],
});
