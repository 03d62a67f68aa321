//! When a request is repeated, and how long to wait before.

mod context;
mod policy;
mod transient;

pub use context::{Attempt, AttemptError, FailingRequest, RetryContext, RetryEnvironment};
pub use policy::{RetriesLeft, RetryPolicy};
pub use transient::{is_transient, is_transient_code, parse_retry_after};
