//! What a process offers to `each`: memory for values, steps that run on several values at a time, and a clock.

use std::{
    any::Any,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst},
    time::Duration,
};

use futures::FutureExt as _;

use pushdown_core::{
    Error,
    step::{CellHost, CellMemory, InnerPipeline},
};

use super::*;

/// Runs `to_float` on several values at a time, with memory of `max_bytes` for a value.
#[derive(Debug)]
struct Host {
    max_bytes: u64,
    refusal: ErrorKind,
    in_use: Arc<InUse>,
    /// Steps that were recorded, with the column.
    recorded: Mutex<Vec<(String, Range<usize>)>>,
}

#[derive(Debug, Default)]
struct InUse {
    values: AtomicUsize,
    most_values: AtomicUsize,
    most_bytes: AtomicU64,
}

/// Memory of a value.
struct Held(Arc<InUse>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.values.fetch_sub(1, SeqCst);
    }
}

impl Host {
    fn new(max_bytes: u64, refusal: ErrorKind) -> Arc<Self> {
        Arc::new(Self {
            max_bytes,
            refusal,
            in_use: Arc::default(),
            recorded: Mutex::default(),
        })
    }
}

impl CellHost for Host {
    fn reserve(&self, bytes: u64) -> BoxFuture<'static, Result<CellMemory>> {
        if bytes > self.max_bytes {
            return futures::future::ready(Err(Error::new(self.refusal, "no memory"))).boxed();
        }
        let in_use = Arc::clone(&self.in_use);
        async move {
            tokio::task::yield_now().await;
            let values = in_use.values.fetch_add(1, SeqCst) + 1;
            in_use.most_values.fetch_max(values, SeqCst);
            in_use.most_bytes.fetch_max(bytes, SeqCst);
            let memory: CellMemory = Box::new(Held(in_use));
            Ok(memory)
        }
        .boxed()
    }

    fn batched_steps(&self, pipeline: &dyn InnerPipeline, stretch: Range<usize>) -> Option<Range<usize>> {
        let pipeline: &dyn Any = pipeline;
        let pipeline: &Pipeline = pipeline.downcast_ref()?;
        let mut steps = stretch;
        let found = steps.find(|step| pipeline.steps()[*step].name() == "to_float")?;
        Some(found..found + 1)
    }

    fn run_batched(
        &self,
        pipeline: &dyn InnerPipeline,
        steps: Range<usize>,
        value: Sample,
    ) -> BoxFuture<'static, Result<Sample>> {
        let pipeline: &dyn Any = pipeline;
        let pipeline: Pipeline = pipeline.downcast_ref::<Pipeline>().unwrap().clone();
        async move {
            for _ in 0..40 {
                tokio::task::yield_now().await;
            }
            pipeline.run(steps, value, &Context::new(b""))
        }
        .boxed()
    }

    fn now(&self) -> Option<Duration> {
        Some(Duration::ZERO)
    }

    fn record(&self, column: &str, steps: Range<usize>, _time: Duration) {
        self.recorded.lock().push((column.to_owned(), steps));
    }
}

fn with_host(host: &Arc<Host>) -> Context<'static> {
    let host: Arc<dyn CellHost> = Arc::<Host>::clone(host);
    Context {
        cells: Some(host),
        ..Context::new(b"photos.parquet")
    }
}

const TEXT: &str = "select | each(image: decode | resize(2, 2) | to_float | normalize(imagenet))";

/// 40 photos, of which every tenth is invalid, and the next one null.
fn many_photos() -> Bytes {
    let photo = |row: u8| match row % 10 {
        4 => Some(b"no photo".to_vec()),
        5 => None,
        _ => Some(png(3 + u32::from(row % 3), row)),
    };
    let photos: ArrayRef = Arc::new((0..40).map(photo).collect::<BinaryArray>());
    parquet_file(
        &RecordBatch::try_from_iter([("n", column(0..40)), ("image", photos)]).unwrap(),
        40,
    )
}

#[test]
fn values_wait_for_steps_together_and_keep_their_order() {
    let object = many_photos();
    let expected = scan_rows(TEXT, &object, &Context::new(b"photos.parquet")).unwrap();
    let host = Host::new(u64::MAX, ErrorKind::TooLarge);
    assert_eq!(scan_rows(TEXT, &object, &with_host(&host)).unwrap(), expected);
    let InUse {
        values,
        most_values,
        most_bytes,
    } = &*host.in_use;
    assert_eq!(values.load(SeqCst), 0, "all memory is released");
    let most = most_values.load(SeqCst);
    assert!((4..=16).contains(&most), "{most} values at a time");
    assert!(
        most_bytes.load(SeqCst) >= 2 * 5 * 3,
        "the pixels of a photo count"
    );
    let recorded = host.recorded.lock();
    assert!(recorded.iter().all(|(column, _)| column == "image"));
    assert!(recorded.iter().any(|(_, steps)| *steps == (3..4)), "{recorded:?}");
}

/// Sixteen values at a time would exceed the bytes of a record batch by far if they turn out to be large.
#[test]
fn values_of_any_size_are_computed_one_by_one() {
    let object = many_photos();
    let text = "select | each(image: decode | to_float)";
    let expected = scan_rows(text, &object, &Context::new(b"photos.parquet")).unwrap();
    let host = Host::new(u64::MAX, ErrorKind::TooLarge);
    assert_eq!(scan_rows(text, &object, &with_host(&host)).unwrap(), expected);
    assert_eq!(host.in_use.most_values.load(SeqCst), 1);
}

/// A value that takes more memory than any may take fails alone. No memory at the moment ends the scan.
#[test]
fn values_without_memory_fail() {
    let object = many_photos();
    let small = Host::new(20, ErrorKind::TooLarge);
    let table = concat(&scan_rows(TEXT, &object, &with_host(&small)).unwrap());
    let errors = table.column(2).as_string::<i32>();
    let failed = (0..40).filter(|row| errors.is_valid(*row) && errors.value(*row) == "no memory");
    assert_eq!(
        failed.count(),
        32,
        "each photo, and none of the bytes that are no photo"
    );
    let none = Host::new(20, ErrorKind::Source);
    let error = scan_rows(TEXT, &object, &with_host(&none)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Source);
}
