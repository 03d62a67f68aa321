//! The further columns of a row: the contents of members of the sample's shard, as they are.

use bytes::Bytes;
use http::StatusCode;

use super::{Batch, rows::SampleError};
use crate::{
    error::{Error, ErrorKind},
    origin::{self, EntryTicket, OriginRequest},
    routes::http::StoreRefusal,
};

/// Reads the further columns of a sample, in the order of the shard. Their memory is reserved with the request.
///
/// # Errors
/// If one of them cannot be read: a row has all its columns, or it fails.
pub(super) async fn read(
    batch: &Batch,
    index: usize,
    request: &OriginRequest,
    tickets: Vec<Option<EntryTicket>>,
) -> Result<Vec<Option<Bytes>>, SampleError> {
    let members = batch.column_members(index)?;
    let reads = members.into_iter().zip(tickets).enumerate();
    let mut reads: Vec<_> = reads
        .filter_map(|(column, (member, ticket))| Some((column, member?, ticket)))
        .collect();
    // In the order of their tickets.
    reads.sort_by_key(|(_, member, _)| member.range().offset());
    let mut contents = vec![None; batch.request.columns.len()];
    for (column, member, ticket) in reads {
        let request = request.clone().with_member(Some(member));
        let content = read_content(batch, request, ticket).await?;
        if let Some(place) = contents.get_mut(column) {
            *place = Some(content);
        }
    }
    Ok(contents)
}

async fn read_content(
    batch: &Batch,
    request: OriginRequest,
    ticket: Option<EntryTicket>,
) -> Result<Bytes, SampleError> {
    let mut answer = batch.services.origin.read_joined(request, ticket).await?;
    if answer.status != StatusCode::OK {
        return Err(StoreRefusal::read(answer).await.into());
    }
    let length = answer
        .content_length
        .ok_or_else(|| Error::new(ErrorKind::Internal, "the content of a member has no length"))?;
    Ok(origin::read_to_end(&[], &mut answer.body, length).await?)
}
