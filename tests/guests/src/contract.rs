//! The contract as Rust, for programs that say what the SDK would not: values out of range, handles
//! of the wrong kind, and failures word for word.

#![allow(
    missing_docs,
    unsafe_code,
    reason = "generated: the calls of the component model, and what the contract leaves to a name"
)]

wit_bindgen::generate!({
    path: "../../wit",
    world: "imports",
    // The SDK's own is in the same program.
    type_section_suffix: "-of-the-test-guests",
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

pub use copyist::copy::{copy, endpoints, jobs, read, types};
