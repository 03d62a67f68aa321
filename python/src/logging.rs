//! Events of the library in Python's `logging`.

use std::{fmt, sync::Once};

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

/// Sends events to Python's `logging` from now on, unless the process has a subscriber already, such as that of the command line.
pub(crate) fn start() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let ours = filter::Targets::new()
            .with_target("pushdown", Level::INFO)
            .with_target("pushdown_client", Level::INFO)
            .with_default(Level::WARN);
        // Somebody else's subscriber stays.
        drop(
            tracing_subscriber::registry()
                .with(PythonLog.with_filter(ours))
                .try_init(),
        );
    });
}

struct PythonLog;

impl<S: Subscriber> Layer<S> for PythonLog {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let mut line = Line::default();
        event.record(&mut line);
        let metadata = event.metadata();
        let level = match *metadata.level() {
            Level::ERROR => 40,
            Level::WARN => 30,
            Level::INFO => 20,
            Level::DEBUG | Level::TRACE => 10,
        };
        let logger = format!("{LOGGER}.{}", metadata.target().replace("::", "."));
        // Not at the end of the interpreter, which has no `logging` any more. What a handler raises is the handler's.
        let _logged = Python::try_attach(|py| {
            let logger = py.import("logging")?.call_method1("getLogger", (logger,))?;
            logger
                .call_method1("log", (level, "%s", line.to_string()))
                .map(drop)
        });
    }
}

/// The message of an event, and its other fields.
#[derive(Debug, Default)]
struct Line {
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
        write!(f, "{}{}", self.message, self.fields)
    }
}
