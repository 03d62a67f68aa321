//! Checks of a batch request that concern several of its fields.

use pushdown_wire::{BatchSample, Pin, Split, StoreEndpoint};

use super::BatchRequest;
use crate::{Error, Kind, Pipeline, Result};

/// Checks that a sample has a signature exactly if the request has the parameters for it.
pub(super) fn signature(sample: &BatchSample, is_presigned: bool) -> Result<()> {
    match (&sample.signature, is_presigned) {
        (Some(_), true) | (None, false) => Ok(()),
        (None, true) => Err(Error::wire(
            "missing signature: expected one for each sample, because the request has `presign`",
        )),
        (Some(_), false) => Err(Error::wire(
            "unexpected signature: expected none without `presign` in the request",
        )),
    }
}

/// Checks that samples for a stated store are presigned: nobody but their signer has rights there.
pub(super) fn store(store: Option<&StoreEndpoint>, is_presigned: bool) -> Result<()> {
    if store.is_some() && !is_presigned {
        return Err(Error::wire(
            "unexpected store: expected it with `presign` only, for samples that are signed for it",
        ));
    }
    Ok(())
}

/// Checks that only values which are not delivered are pinned, and that nothing else is asked for with these.
pub(super) fn deliver(request: &BatchRequest) -> Result<()> {
    if request.deliver {
        return match request.pin {
            Some(_) => Err(Error::wire(
                "unexpected pin: expected it with `deliver: false` only",
            )),
            None => Ok(()),
        };
    }
    let unsupported = [
        ("table", request.table.is_some()),
        ("columns", !request.columns.is_empty()),
    ];
    if let Some((name, _)) = unsupported.iter().find(|(_, is_present)| *is_present) {
        return Err(Error::wire(format!(
            "unexpected {name}: expected none with `deliver: false`, which sends and stores no {name}"
        )));
    }
    request.pin.as_ref().map_or(Ok(()), Pin::check)
}

/// Checks that a sample has a member or none for each further column of the request, or no columns at all.
pub(super) fn number_of_columns(sample: &BatchSample, expected: usize) -> Result<()> {
    match sample.columns.len() {
        0 => Ok(()),
        found if found == expected => Ok(()),
        found => Err(Error::wire(format!(
            "invalid columns: expected {expected}, as the request has names, or none, found {found}"
        ))),
    }
}

/// Checks that only a sample that is its object asks for a form of it.
pub(super) fn form(sample: &BatchSample, split: Split) -> Result<()> {
    match sample.form {
        Some(form) if split != Split::At(0) => Err(Error::wire(format!(
            "unexpected form `{form}`: expected it for the split 0 only, found {split}"
        ))),
        _ => Ok(()),
    }
}

/// Checks that the gateway has the whole object in memory, to send it instead of a value that is too large.
pub(super) fn whole_object(pipeline: &Pipeline) -> Result<()> {
    if pipeline.kinds().iter().any(|kind| matches!(kind, Kind::Table(_))) {
        return Err(Error::wire(
            "max_bytes is not supported for pipelines with tables",
        ));
    }
    Ok(())
}

/// Checks that the tables of all samples can be merged: each one has to be a scan.
pub(super) fn table(
    pipeline: &Pipeline,
    split: Split,
    samples: &[BatchSample],
    columns: &[String],
) -> Result<()> {
    if !columns.is_empty() {
        return Err(Error::wire(
            "cannot merge tables: `table` does not support further columns",
        ));
    }
    let stage = match split {
        Split::Full => pipeline.len(),
        Split::At(stage) => usize::from(stage),
        Split::Smallest => {
            return Err(Error::wire(
                "cannot merge tables: expected the split `full` or a stage, found `smallest`",
            ));
        }
    };
    if !pipeline.is_scan(&(0..stage)) {
        return Err(Error::wire(format!(
            "cannot merge tables: expected `select` or `sql`, followed by `sample` and `each` only, in the first {stage} steps"
        )));
    }
    if let Some(index) = samples.iter().position(|sample| sample.split.is_some()) {
        return Err(Error::wire(format!(
            "cannot merge tables: sample {index} has a split of its own"
        )));
    }
    match samples.iter().position(|sample| sample.member.is_some()) {
        Some(index) => Err(Error::wire(format!(
            "cannot merge tables: sample {index} is a member of a shard, which `table` does not support"
        ))),
        None => Ok(()),
    }
}
