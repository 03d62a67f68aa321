//! Events of the library in Python's `logging`.
//!
//! They arise on threads that must not wait for the interpreter lock, and while a thread runs futures, where no Python code may run: it
//! could call this module again. So they are queued, and logged by the Python thread that waits next.

use std::{
    fmt,
    sync::{
        OnceLock,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
};

use pushdown_client::internal::Escaped;
use pushdown_exec::sync::Mutex;
use pyo3::prelude::*;
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    Layer, filter,
    layer::{Context, SubscriberExt as _},
    util::SubscriberInitExt as _,
};

/// The logger of all events, as `pushdown.native.<module>`.
const LOGGER: &str = "pushdown.native";
/// Events that wait to be logged. More are dropped.
const MAX_EVENTS: usize = 1024;

/// The queue. Its sender takes no lock, and its receiver is locked only by who holds the interpreter lock, so that neither is locked in a
/// forked child.
static QUEUE: OnceLock<Mutex<Receiver<Line>>> = OnceLock::new();

/// Queues events from now on, unless the process has a subscriber already, such as that of the command line.
pub(crate) fn start() {
    if QUEUE.get().is_some() {
        return;
    }
    let (sender, receiver) = sync_channel(MAX_EVENTS);
    if QUEUE.set(Mutex::new(receiver)).is_err() {
        return;
    }
    let ours = filter::Targets::new()
        .with_target("pushdown", Level::INFO)
        .with_target("pushdown_client", Level::INFO)
        .with_default(Level::WARN);
    let layer = QueueLayer(sender).with_filter(ours);
    // Somebody else's subscriber stays.
    drop(tracing_subscriber::registry().with(layer).try_init());
}

/// Logs what is queued.
///
/// # Errors
/// What a handler raises, such as `KeyboardInterrupt`.
pub(crate) fn drain(py: Python<'_>) -> PyResult<()> {
    let Some(queue) = QUEUE.get() else {
        return Ok(());
    };
    let lines: Vec<Line> = queue.lock().try_iter().collect();
    for line in lines {
        let logger = py.import("logging")?.call_method1("getLogger", (&line.logger,))?;
        logger.call_method1("log", (line.level, "%s", line.to_string()))?;
    }
    Ok(())
}

struct QueueLayer(SyncSender<Line>);

impl<S: Subscriber> Layer<S> for QueueLayer {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let metadata = event.metadata();
        let mut line = Line {
            logger: format!("{LOGGER}.{}", metadata.target().replace("::", ".")),
            level: match *metadata.level() {
                Level::ERROR => 40,
                Level::WARN => 30,
                Level::INFO => 20,
                Level::DEBUG | Level::TRACE => 10,
            },
            message: String::new(),
            fields: String::new(),
        };
        event.record(&mut line);
        // Nobody waits for a full queue.
        let _is_queued = self.0.try_send(line);
    }
}

/// An event: where it arose, its level in Python, its message, and its other fields.
#[derive(Debug)]
struct Line {
    logger: String,
    level: u8,
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        use fmt::Write as _;
        // Writing to a string cannot fail.
        let _written = if field.name() == "message" {
            write!(self.message, "{value:?}")
        } else {
            write!(self.fields, " {}={value:?}", field.name())
        };
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", Escaped(&self.message), Escaped(&self.fields))
    }
}
