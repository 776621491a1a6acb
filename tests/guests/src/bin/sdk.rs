//! The SDK as an author uses it: `sdk DIRECTORY`, the name of the only granted directory, which is
//! empty and may be written.

use std::error::Error;
use std::path::Path;
use std::{env, fs, io};

use copyist_guest::{
    Cause, CopyOptions, ErrorCode, Existing, Job, Limit, Location, ReadOptions, Side, Window,
};
use copyist_test_guests::{Arguments, open};
use wasip2::filesystem::types::{DescriptorFlags, OpenFlags};
use wasip2::io::poll::poll;

fn main() -> Result<(), Box<dyn Error>> {
    let [directory] = Arguments::from_env().paths();
    let directory = Path::new(&directory);
    let (a, b) = (directory.join("a"), directory.join("b"));
    fs::write(&a, "tea and copies\n")?;

    copies_and_reads(&a, &b)?;
    keeps_what_exists(&a, &b)?;
    takes_handles(&directory.to_string_lossy())?;
    starts_jobs(directory, &a)?;
    explains_failures(directory, &a)?;
    follows_the_working_directory(directory)
}

fn copies_and_reads(a: &Path, b: &Path) -> Result<(), Box<dyn Error>> {
    let summary = copyist_guest::copy(a, b)?;
    assert_eq!(
        (summary.bytes, summary.files, summary.changed),
        (15, 1, false)
    );
    assert_eq!(copyist_guest::read(b)?, b"tea and copies\n");
    assert_eq!(copyist_guest::read_to_string(b)?, "tea and copies\n");
    assert_eq!(
        ReadOptions::new().offset(4).length(3).read_to_string(b)?,
        "and"
    );

    let window = Window {
        source_offset: 0,
        length: Some(3),
        destination_offset: 8,
    };
    CopyOptions::new().window(window).copy(a, b)?;
    assert_eq!(fs::read_to_string(b)?, "tea and teaies\n");
    Ok(())
}

fn keeps_what_exists(a: &Path, b: &Path) -> Result<(), Box<dyn Error>> {
    assert_eq!(
        CopyOptions::new()
            .existing(Existing::Skip)
            .copy(a, b)?
            .skipped,
        1
    );
    let refused = CopyOptions::new()
        .existing(Existing::Refuse)
        .copy(a, b)
        .expect_err("the destination exists");
    assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(fs::read_to_string(b)?, "tea and teaies\n");

    CopyOptions::new().replace(true).copy(a, b)?;
    assert_eq!(fs::read_to_string(b)?, "tea and copies\n");
    Ok(())
}

fn takes_handles(directory: &str) -> Result<(), Box<dyn Error>> {
    let dir = open(
        directory,
        OpenFlags::DIRECTORY,
        DescriptorFlags::MUTATE_DIRECTORY,
    )?;
    let a = open(
        &format!("{directory}/a"),
        OpenFlags::empty(),
        DescriptorFlags::READ,
    )?;
    copyist_guest::copy(&a, (&dir, "c"))?;
    copyist_guest::copy(Location::beneath(&dir, "c"), Location::beneath(&dir, "d"))?;
    assert_eq!(
        copyist_guest::read_to_string((&dir, "d"))?,
        "tea and copies\n"
    );

    let same = copyist_guest::copy((&dir, "d"), (&dir, "d")).expect_err("both ends are one file");
    assert_eq!(same.cause(), &Cause::SameFile);
    assert_eq!(copyist_guest::read((&dir, "d"))?.len(), 15);
    Ok(())
}

fn starts_jobs(directory: &Path, a: &Path) -> Result<(), Box<dyn Error>> {
    let names = ["g", "h"].map(|name| directory.join(name));
    let jobs = [
        copyist_guest::start(a, &names[0])?,
        CopyOptions::new().replace(true).start(a, &names[1])?,
    ];
    let ready = jobs.each_ref().map(Job::subscribe);
    for (job, name) in jobs.iter().zip(&names) {
        assert_eq!(job.wait()?.bytes, 15);
        assert_eq!(fs::read_to_string(name)?, "tea and copies\n");
        let progress = job.progress();
        assert_eq!(
            (progress.bytes, progress.total, progress.entries),
            (15, Some(15), 1)
        );
        assert!(job.is_finished());
        // The outcome stays.
        job.cancel();
        assert_eq!(job.wait()?.files, 1);
    }
    assert_eq!(poll(&[&ready[0], &ready[1]]), [0, 1]);

    let failed = copyist_guest::start(directory.join("absent"), &names[0])?;
    for _ in 0..2 {
        let error = failed.wait().expect_err("there is no source");
        assert_eq!(
            (error.kind(), error.side()),
            (io::ErrorKind::NotFound, Some(Side::Source))
        );
        assert!(error.path().is_some_and(|path| path.ends_with("absent")));
    }
    let error = copyist_guest::start(a, "/nowhere/granted").expect_err("no directory is granted");
    assert_eq!(error.side(), Some(Side::Destination));
    // Handles are the job's own.
    let handle = open(
        &a.to_string_lossy(),
        OpenFlags::empty(),
        DescriptorFlags::READ,
    )?;
    let job = copyist_guest::start(&handle, &names[0])?;
    drop(handle);
    assert_eq!(job.wait()?.bytes, 15);
    Ok(())
}

fn explains_failures(directory: &Path, a: &Path) -> Result<(), Box<dyn Error>> {
    let absent = directory.join("absent");
    let error = copyist_guest::copy(&absent, directory.join("f")).expect_err("there is no source");
    assert_eq!(
        error.cause(),
        &Cause::Filesystem((Side::Source, ErrorCode::NoEntry))
    );
    assert_eq!(
        (error.side(), error.path()),
        (Some(Side::Source), absent.to_str())
    );
    assert!(
        error.to_string().contains("the source does not exist"),
        "{error}"
    );
    assert_eq!(io::Error::from(error).kind(), io::ErrorKind::NotFound);
    assert!(!directory.join("f").exists());

    let error =
        copyist_guest::copy(a, "/nowhere/granted").expect_err("no directory is granted for it");
    assert_eq!(
        (error.kind(), error.side()),
        (io::ErrorKind::NotFound, Some(Side::Destination))
    );
    assert!(error.to_string().contains("--dir"), "{error}");

    let error = ReadOptions::new()
        .limit(14)
        .read(a)
        .expect_err("there are 15 bytes");
    assert_eq!(error.cause(), &Cause::Limit(Limit::ReadSize));
    assert_eq!(ReadOptions::new().limit(15).read(a)?.len(), 15);

    fs::write(directory.join("binary"), b"\xff\n")?;
    let error =
        copyist_guest::read_to_string(directory.join("binary")).expect_err("it is not UTF-8");
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    Ok(())
}

/// The last, since the first working directory is no granted one and there is no way back.
fn follows_the_working_directory(directory: &Path) -> Result<(), Box<dyn Error>> {
    env::set_current_dir(directory)?;
    copyist_guest::copy("a", "./e")?;
    assert_eq!(fs::read_to_string("e")?, "tea and copies\n");
    Ok(())
}
