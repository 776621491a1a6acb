//! What an embedder is told of each copy: a span, and a call of its own.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use copyist_test_artifacts::{READ_FILE, TRANSFER_FILE, TRANSFER_PATH, VERBATIM};
use copyist_wasmtime::engine::{Cause, Errno, Limit, Side, Unsupported};
use copyist_wasmtime::{CopyCtxBuilder, Report, What};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::host::{Guest, Linking};
use crate::place::{Place, pattern};
use crate::system::{Altered, Call};

/// A span by its fields.
type Span = BTreeMap<&'static str, String>;

/// Keeps spans: one for the process, since what a thread's own subscriber wants is not asked when
/// another thread comes first to where a span is opened. By hand, since a crate that does it would
/// bring in more than this.
#[derive(Default)]
struct Spans {
    kept: Mutex<HashMap<u64, Span>>,
    next: AtomicU64,
}

static SPANS: LazyLock<&Spans> = LazyLock::new(|| {
    let spans: &Spans = Box::leak(Box::default());
    tracing::subscriber::set_global_default(spans).unwrap();
    // Who opened a span meanwhile was told that nobody wants it.
    tracing::callsite::rebuild_interest_cache();
    spans
});

thread_local! {
    /// Those that this thread opened since it wanted to know.
    static OPENED: RefCell<Option<Vec<u64>>> = const { RefCell::new(None) };
}

/// The spans that `run` opens on this thread.
fn spans_of(run: impl FnOnce()) -> Vec<Span> {
    let spans = *SPANS;
    OPENED.replace(Some(Vec::new()));
    run();
    let opened = OPENED.take().unwrap();
    let mut kept = spans.kept.lock().unwrap();
    opened.iter().map(|id| kept.remove(id).unwrap()).collect()
}

struct Fields<'a>(&'a mut Span);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

impl Subscriber for &'static Spans {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "copyist"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        OPENED.with_borrow_mut(|opened| {
            if let Some(opened) = opened {
                let mut fields = Span::from([("name", span.metadata().name().to_owned())]);
                span.record(&mut Fields(&mut fields));
                self.kept.lock().unwrap().insert(id, fields);
                opened.push(id);
            }
        });
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        if let Some(span) = self.kept.lock().unwrap().get_mut(&span.into_u64()) {
            values.record(&mut Fields(span));
        }
    }

    fn try_close(&self, span: Id) -> bool {
        if let Some(span) = self.kept.lock().unwrap().get_mut(&span.into_u64()) {
            span.insert("closed", "true".to_owned());
        }
        true
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

fn copying(place: &Place, words: &[&str]) -> Guest {
    Guest::new(TRANSFER_PATH)
        .dir(place.root(), "w")
        .read_only_dir(place.root(), "r")
        .args(words.to_vec())
}

#[track_caller]
fn assert_fields(span: &Span, expected: &[(&str, &str)]) {
    for (field, value) in expected {
        let found = span.get(field).map_or("", |found| found);
        assert_eq!(found, *value, "{field} of {span:?}");
    }
    assert!(span["elapsed_us"].parse::<u64>().is_ok(), "{span:?}");
    assert_eq!(span["closed"], "true");
}

#[test]
fn a_copy_is_a_span_with_its_outcome() {
    for linking in Linking::BOTH {
        let place = Place::with("from", &pattern(1000));
        let spans = spans_of(|| {
            let words = ["w/from", "w/to", "--reflink=never"];
            let guest = copying(&place, &words).copying(|copying| {
                copying.tuning(copyist_wasmtime::engine::Tuning {
                    force_fallback: true,
                    ..Default::default()
                });
            });
            guest.run(linking).answer().done();
            let words = ["w/from", "w/to", "--existing=skip"];
            copying(&place, &words).run(linking).answer().done();
            Guest::new(TRANSFER_FILE)
                .dir(place.root(), "w")
                .args(["w/from", "w/to"])
                .copying(|copying| {
                    copying.pool(Altered::failing(Call::Clone, Errno::OPNOTSUPP).pool());
                })
                .run(linking)
                .answer()
                .done();
            let guest = Guest::new(READ_FILE).dir(place.root(), "w");
            guest.args(["w/from"]).run(linking).answer().done();
        });
        let [copied, skipped, refused, read] = spans.try_into().unwrap();
        assert_fields(
            &copied,
            &[
                ("name", "copy"),
                ("what", "copy"),
                ("source", "from"),
                ("destination", "to"),
                ("bytes", "1000"),
                ("shared", "0"),
                ("method", "read-write"),
                ("skipped", "0"),
                ("error", ""),
                ("refused", ""),
            ],
        );
        assert_fields(
            &skipped,
            &[("skipped", "1"), ("bytes", "0"), ("method", "none")],
        );
        assert_fields(
            &refused,
            &[
                ("source", ""),
                ("destination", ""),
                ("bytes", "1000"),
                // The system's word is for the embedder.
                ("refused", "clone: Operation not supported (os error 95)"),
            ],
        );
        assert_fields(
            &read,
            &[
                ("what", "read"),
                ("source", "from"),
                ("destination", ""),
                ("bytes", "1000"),
                ("method", "read-write"),
            ],
        );
    }
}

#[test]
fn a_copy_that_fails_or_is_refused_is_a_span_with_its_cause() {
    for linking in Linking::BOTH {
        let place = Place::with("from", &pattern(1000));
        let spans = spans_of(|| {
            for words in [["w/absent", "w/to"], ["w/from", "r/to"]] {
                copying(&place, &words).run(linking).answer();
            }
            let guest = copying(&place, &["w/from", "w/to"]).copying(|copying| {
                copying.max_copies(0);
            });
            guest.run(linking).answer();
        });
        let [absent, read_only, limited] = spans.try_into().unwrap();
        assert_fields(
            &absent,
            &[
                ("source", "absent"),
                ("error", "source: No such file or directory (os error 2)"),
                ("bytes", "0"),
                ("method", "none"),
            ],
        );
        assert_fields(
            &read_only,
            &[("error", "destination: Operation not permitted (os error 1)")],
        );
        assert_fields(
            &limited,
            &[("error", "as many copies as are allowed are under way")],
        );
    }
}

/// What the observer got.
#[derive(Debug, PartialEq)]
struct Told {
    what: What,
    source: Option<PathBuf>,
    destination: Option<PathBuf>,
    outcome: Result<u64, Cause>,
}

fn observe(copying: &mut CopyCtxBuilder) -> Arc<Mutex<Vec<Told>>> {
    let told: Arc<Mutex<Vec<_>>> = Arc::default();
    let tell = told.clone();
    copying.on_copy(move |report: &Report<'_>| {
        tell.lock().unwrap().push(Told {
            what: report.what,
            source: report.source.map(Into::into),
            destination: report.destination.map(Into::into),
            outcome: match report.outcome {
                Ok(summary) => Ok(summary.bytes),
                Err(error) => Err(error.cause.clone()),
            },
        });
    });
    told
}

#[test]
fn the_embedder_hears_of_each_copy_once_also_of_those_that_were_refused() {
    let failed = |side, errno| Err(Cause::Io(side, errno));
    for linking in Linking::BOTH {
        let place = Place::with("from", &pattern(1000));
        let hear = |guest: Guest, change: fn(&mut CopyCtxBuilder)| {
            let mut told = None;
            let ended = guest
                .copying(|copying| {
                    change(copying);
                    told = Some(observe(copying));
                })
                .run(linking);
            ended.output();
            let told = std::mem::take(&mut *told.unwrap().lock().unwrap());
            let [told] = told.try_into().unwrap();
            told
        };
        let as_it_is: fn(&mut CopyCtxBuilder) = |_| {};
        let by_path = |source: &str, destination: &str, outcome| Told {
            what: What::Copy,
            source: Some(source.into()),
            destination: Some(destination.into()),
            outcome,
        };
        let by_descriptor = |outcome| Told {
            what: What::Copy,
            source: None,
            destination: None,
            outcome,
        };
        let read = |source: &str, outcome| Told {
            what: What::Read,
            source: Some(source.into()),
            destination: None,
            outcome,
        };

        let told = hear(copying(&place, &["w/from", "w/to"]), as_it_is);
        assert_eq!(told, by_path("from", "to", Ok(1000)));
        let told = hear(copying(&place, &["w/absent", "w/to"]), as_it_is);
        assert_eq!(
            told,
            by_path("absent", "to", failed(Side::Source, Errno::NOENT))
        );
        let told = hear(copying(&place, &["w/from", "r/to"]), as_it_is);
        assert_eq!(
            told,
            by_path("from", "to", failed(Side::Destination, Errno::PERM))
        );
        let told = hear(copying(&place, &["w/from", "w/to"]), |copying| {
            copying.max_copies(0);
        });
        assert_eq!(
            told,
            by_path("from", "to", Err(Cause::Limit(Limit::Copies)))
        );

        let file = |words: &[&str]| {
            Guest::new(TRANSFER_FILE)
                .dir(place.root(), "w")
                .args(words.to_vec())
        };
        let told = hear(file(&["w/from", "w/to"]), as_it_is);
        assert_eq!(told, by_descriptor(Ok(1000)));
        let told = hear(file(&["w/from", "w/to", "--source=w"]), as_it_is);
        assert_eq!(told, by_descriptor(failed(Side::Source, Errno::BADF)));
        // The descriptor of a directory.
        let told = hear(file(&["w/", "w/to"]), as_it_is);
        assert_eq!(told, by_descriptor(failed(Side::Source, Errno::ISDIR)));
        let told = hear(file(&["w/from", "w/", "--destination=r"]), as_it_is);
        assert_eq!(told, by_descriptor(failed(Side::Destination, Errno::ISDIR)));
        let told = hear(file(&["w/from", "w/to", "--replace"]), as_it_is);
        assert_eq!(
            told,
            by_descriptor(Err(Cause::Unsupported(Unsupported::Replace)))
        );

        let guest = |words: &[&str]| {
            Guest::new(VERBATIM)
                .dir(place.root(), "w")
                .args(["--dir=w"])
                .args(words.to_vec())
        };
        let told = hear(guest(&["bytes", "from"]), as_it_is);
        assert_eq!(told, read("from", Ok(1000)));
        let told = hear(guest(&["text", "from"]), as_it_is);
        assert_eq!(told, read("from", Err(Cause::NotUtf8)));
        let told = hear(guest(&["bytes", "from", "--limit=999"]), as_it_is);
        assert_eq!(told, read("from", Err(Cause::Limit(Limit::ReadSize))));
        let told = hear(guest(&["bytes", "from", "--window=0::1"]), as_it_is);
        assert_eq!(told, read("from", failed(Side::Destination, Errno::INVAL)));
    }
}
