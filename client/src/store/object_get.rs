//! The GETs of one object.

use http::HeaderMap;
use pushdown_s3::RangeTransport;

use super::{Failure, Store};
use crate::transport::Answer;

/// Sends signed GETs of an object, each with the current credentials.
#[derive(Debug)]
pub(super) struct ObjectGet {
    pub(super) store: Store,
    pub(super) bucket: String,
    pub(super) key: String,
}

impl RangeTransport for ObjectGet {
    type Answer = Answer;
    type Error = Failure;

    async fn get(&self, headers: HeaderMap) -> Result<Answer, Failure> {
        self.store.send_get(&self.bucket, &self.key, headers).await
    }
}
