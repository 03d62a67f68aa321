//! The further columns of a row: the contents of members of the sample's shard, as they are.

use bytes::Bytes;
use http::StatusCode;

use super::{Batch, rows::SampleError};
use crate::{
    error::{Error, ErrorKind},
    origin::{self, OriginRequest},
    routes::http::StoreRefusal,
};

/// Reads the further columns of a sample. Their memory is reserved with the request.
///
/// # Errors
/// If one of them cannot be read: a row has all its columns, or it fails.
pub(super) async fn read(
    batch: &Batch,
    index: usize,
    request: &OriginRequest,
) -> Result<Vec<Option<Bytes>>, SampleError> {
    let members = batch.column_members(index)?;
    let mut contents = vec![None; batch.request.columns.len()];
    for (content, member) in contents.iter_mut().zip(members) {
        if member.is_some() {
            let request = request.clone().with_member(member);
            *content = Some(read_content(batch, request).await?);
        }
    }
    Ok(contents)
}

async fn read_content(batch: &Batch, request: OriginRequest) -> Result<Bytes, SampleError> {
    let mut answer = batch.services.origin.read(request).await?;
    if answer.status != StatusCode::OK {
        return Err(StoreRefusal::read(answer).await.into());
    }
    let length = answer
        .content_length
        .ok_or_else(|| Error::new(ErrorKind::Internal, "the content of a member has no length"))?;
    Ok(origin::read_to_end(&[], &mut answer.body, length).await?)
}
