//! What a program is given: `cli_environment WORD..` prints its arguments, its variables and the
//! names of its directories, a line each.

use std::env;

use copyist_test_guests::say;
use wasip2::filesystem::preopens::get_directories;

fn main() {
    for argument in env::args().skip(1) {
        say(format_args!("argument {argument}"));
    }
    for (name, value) in env::vars() {
        say(format_args!("variable {name}={value}"));
    }
    for (_, name) in get_directories() {
        say(format_args!("directory {name}"));
    }
}
