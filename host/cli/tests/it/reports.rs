//! `--report json`: a line a copy, which programs read.

use copyist_test_artifacts::{READ_FILE, TRANSFER_PATH};
use serde_json::{Value, json};

use crate::command::{Place, run};

/// The lines of a run with this program and these arguments.
fn report(place: &Place, program: &str, words: &[&str]) -> Vec<Value> {
    let dir = place.under("w");
    let ended = run([&["run", "--report", "json", "--dir", &dir, program], words].concat());
    let ended = ended.with_status(0);
    ended
        .errors
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn each_copy_is_a_line_that_says_the_mechanism() {
    let place = Place::with(&[7; 100_000]);
    let words = ["w/from", "w/to", "w/absent", "w/to", "w/from", "w/to"];
    let lines = report(&place, TRANSFER_PATH, &words);
    let [copied, failed, again] = lines.try_into().unwrap();
    for line in [&copied, &again] {
        assert_eq!(line["what"], "copy");
        assert_eq!(
            (&line["source"], &line["destination"]),
            (&json!("from"), &json!("to"))
        );
        assert_eq!(
            (&line["bytes"], &line["consumed"]),
            (&json!(100_000), &json!(100_000))
        );
        assert_eq!(line["error"], Value::Null);
        let method = line["method"].as_str().unwrap();
        assert!(
            ["clone", "copy-range", "send-file", "read-write"].contains(&method),
            "{method}"
        );
        let shared = if method == "clone" { 100_000 } else { 0 };
        assert_eq!(line["shared"], shared);
        assert_eq!((&line["skipped"], &line["lost"]), (&json!(0), &json!([])));
        assert_eq!(line["changed"], false);
        assert!(
            line["elapsed_us"].as_u64() >= line["engine_us"].as_u64(),
            "{line}"
        );
        for refused in line["refused"].as_array().unwrap() {
            assert!(refused["method"].is_string(), "{line}");
        }
    }
    assert_eq!(failed["source"], "absent");
    assert_eq!(failed["method"], "none");
    let error = failed["error"].as_str().unwrap();
    assert!(
        error.contains("source") && error.contains("No such file"),
        "{error}"
    );
}

#[test]
fn a_path_may_hold_anything() {
    let place = Place::with(b"bytes");
    let words = ["w/from", "w/a \"name\"\n with \\ all"];
    let [line] = report(&place, TRANSFER_PATH, &words).try_into().unwrap();
    assert_eq!(line["destination"], "a \"name\"\n with \\ all");
}

#[test]
fn a_read_and_a_refusal_are_lines_too() {
    let place = Place::with(b"bytes");
    let [line] = report(&place, READ_FILE, &["w/from"]).try_into().unwrap();
    assert_eq!(
        (&line["what"], &line["destination"]),
        (&json!("read"), &Value::Null)
    );
    assert_eq!(
        (&line["bytes"], &line["method"]),
        (&json!(5), &json!("read-write"))
    );

    let dir = place.under("r");
    let words = [
        "run",
        "--report=json",
        "--ro-dir",
        &dir,
        TRANSFER_PATH,
        "r/from",
        "r/to",
    ];
    let ended = run(words).with_status(0);
    let line: Value = serde_json::from_str(&ended.errors).unwrap();
    let error = line["error"].as_str().unwrap();
    assert!(
        error.contains("destination") && error.contains("not permitted"),
        "{error}"
    );
}

#[test]
fn without_it_nothing_is_said() {
    let place = Place::with(b"bytes");
    let dir = place.under("w");
    let ended = run(["run", "--dir", &dir, TRANSFER_PATH, "w/from", "w/to"]).with_status(0);
    assert_eq!(ended.errors, "");
}
