//! `cargo demo`: builds the example guests, runs them under `copyist run` on real files, and shows
//! the commands, so that you can go on by hand.
#![expect(clippy::print_stdout, reason = "it is here to be read")]

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Termination};

/// Large enough that a rate means something.
const LARGE: usize = 256 << 20;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    println!("Building the guests ...");
    let plugin = guest("copyist-example-plugin")?;
    let side_by_side = guest("copyist-example-side-by-side")?;

    let place = tempfile::tempdir()?;
    let (from, to) = (place.path().join("in"), place.path().join("out"));
    fs::create_dir(&from)?;
    fs::create_dir(&to)?;
    fs::write(
        from.join("note.txt"),
        "A note, copied without passing the guest.\n",
    )?;
    make_large(&from.join("large.bin"))?;

    println!("\nA plugin that collects files, which the host copies:\n");
    copyist(
        &from,
        &to,
        &plugin,
        &["/out", "/in/note.txt", "/in/large.bin"],
    )?;
    check(&from.join("note.txt"), &to.join("note.txt"))?;
    check(&from.join("large.bin"), &to.join("large.bin"))?;
    println!("\nBoth files arrived byte for byte. The same again:\n");
    copyist(
        &from,
        &to,
        &plugin,
        &["/out", "/in/note.txt", "/in/large.bin"],
    )?;

    println!("\nThe large file by the host, and by the guest's own std::fs::copy:\n");
    copyist(&from, &to, &side_by_side, &["/in/large.bin", "/out"])?;
    check(&to.join("by-the-host"), &to.join("by-the-guest"))?;
    println!("\nBoth copies are the same.");
    Ok(ExitCode::SUCCESS)
}

fn guest(package: &str) -> Result<PathBuf, Box<dyn Error>> {
    let mut components = copyist_guest_build::build(package, &[])?;
    match components.pop() {
        Some(component) => Ok(component.path),
        None => Err(format!("{package} has no program").into()),
    }
}

/// Runs `copyist run` in this process, and shows it as a command line.
fn copyist(
    from: &Path,
    to: &Path,
    component: &Path,
    arguments: &[&str],
) -> Result<(), Box<dyn Error>> {
    let (from, to) = (from.display(), to.display());
    let mut line = vec![
        "copyist".to_owned(),
        "run".to_owned(),
        "--ro-dir".to_owned(),
        format!("{from}::/in"),
        "--dir".to_owned(),
        format!("{to}::/out"),
        component.display().to_string(),
    ];
    line.extend(arguments.iter().map(|argument| (*argument).to_owned()));
    println!("$ {}", line.join(" "));
    let status = copyist::main(line.into_iter().map(Into::into));
    if status.report() != ExitCode::SUCCESS {
        return Err("the guest failed: see above".into());
    }
    Ok(())
}

/// Bytes that no file system can leave out.
fn make_large(path: &Path) -> Result<(), Box<dyn Error>> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let mut state = 1_u64;
    for _ in 0..LARGE / 8 {
        // A linear congruential generator: Knuth's constants.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        file.write_all(&state.to_le_bytes())?;
    }
    file.flush()?;
    Ok(())
}

fn check(one: &Path, other: &Path) -> Result<(), Box<dyn Error>> {
    if fs::read(one)? != fs::read(other)? {
        return Err(format!("{} and {} differ", one.display(), other.display()).into());
    }
    Ok(())
}
