//! What the contract looks like in Rust, and nothing else: the output of `bindgen!`.
//!
//! Only `copy` and `read` block, so only they are bound twice. The others are shared.
#![expect(
    unreachable_pub,
    reason = "the macro writes public items, and wants those that it is given to be public too"
)]

mod waits {
    wasmtime::component::bindgen!({
        path: "wit",
        world: "copyist:copy/imports",
        with: {
            "wasi": wasmtime_wasi::p2::bindings,
            "copyist:copy/endpoints.endpoint": crate::channel::Held,
            "copyist:copy/jobs.job": crate::job::Job,
            "copyist:copy/types.options": crate::options::Asked,
        },
        imports: {
            "copyist:copy/copy.transfer": async | trappable,
            "copyist:copy/copy.tree": async | trappable,
            "copyist:copy/read.bytes": async | trappable,
            "copyist:copy/read.text": async | trappable,
            default: trappable,
        },
    });
}

/// `copy` and `read` for hosts that call guests without async.
pub mod sync {
    mod blocks {
        wasmtime::component::bindgen!({
            path: "wit",
            world: "copyist:copy/imports",
            with: {
                "wasi": wasmtime_wasi::p2::bindings,
                "copyist:copy/endpoints": super::super::endpoints,
                "copyist:copy/jobs": super::super::jobs,
                "copyist:copy/types": super::super::types,
            },
            imports: { default: trappable },
            require_store_data_send: true,
        });
    }
    pub use blocks::copyist::copy::{copy, read};
}

pub use waits::copyist::copy::{copy, endpoints, jobs, read, types};
