//! What the answers of all pipeline routes share: content negotiation, conditions, headers and bodies.

mod accept;
mod body;
mod etag;
mod headers;
pub(super) mod range;
mod store_refusal;
mod stream;
mod timing;

pub(super) use {
    accept::AnswerForm,
    body::{ValueBody, next_frame},
    headers::{
        AnswerHead, insert, insert_cached_ratios, insert_engine, insert_timing, insert_warnings, respond,
    },
    store_refusal::StoreRefusal,
    stream::stream_body,
    timing::Timing,
};
