//! The ways in which a program ends: `cli_end exit N`, `return`, `fail`, `trap`, `loop` or `sleep`.

use std::env;
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    let words: Vec<_> = env::args().skip(1).collect();
    match &*words.iter().map(String::as_str).collect::<Vec<_>>() {
        // Not by std, which knows only whether a program of WASI 0.2 succeeds.
        ["exit", status] => {
            wasip2::cli::exit::exit_with_code(status.parse().expect("an exit status"));
            unreachable!("it returned from its exit");
        }
        ["return"] => ExitCode::SUCCESS,
        ["fail"] => ExitCode::FAILURE,
        ["trap"] => panic!("as the test wants"),
        ["loop"] => loop {
            std::hint::spin_loop();
        },
        ["sleep"] => {
            #[expect(clippy::disallowed_methods, reason = "it is what is tested")]
            std::thread::sleep(Duration::from_secs(3600));
            ExitCode::SUCCESS
        }
        _ => panic!("{words:?} is unknown"),
    }
}
