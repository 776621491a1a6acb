//! The contract, as Rust. The handles and errors of WASI are those of the `wasip2` crate, so that
//! who opened something by it can copy it.

#![allow(
    missing_docs,
    reason = "generated: what the contract leaves to a name has no more here"
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
    additional_derives_ignore: ["destination", "location", "source"],
});
