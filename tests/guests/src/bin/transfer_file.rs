//! A copy by open descriptor.
//!
//! `transfer_file FROM TO [WORD..]`, the words being those of [`Arguments::copy_options`] and
//! `--source=r|w|rw`, `--destination=r|w|rw`: how the ends are opened; `--create`: the destination
//! is created; `--same`: the descriptor of the source is the destination too, and TO is not opened.

use copyist_test_guests::{Arguments, open, report};
use wasip2::filesystem::types::{DescriptorFlags, OpenFlags};

fn main() {
    let mut arguments = Arguments::from_env();
    let options = arguments.copy_options();
    let source_rights = arguments.rights("source", DescriptorFlags::READ);
    let destination_rights = arguments.rights("destination", DescriptorFlags::WRITE);
    let create = arguments.flag("create");
    let same = arguments.flag("same");
    let [from, to] = arguments.paths();

    let from = open(&from, OpenFlags::empty(), source_rights).expect("the source opens");
    if same {
        return report(options.copy(&from, &from));
    }
    let how = if create {
        OpenFlags::CREATE
    } else {
        OpenFlags::empty()
    };
    let to = open(&to, how, destination_rights).expect("the destination opens");
    report(options.copy(&from, &to));
}
