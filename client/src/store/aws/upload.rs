//! Writes objects.

use std::mem;

use aws_sdk_s3::{
    Client,
    config::http::HttpResponse,
    error::{ProvideErrorMetadata, SdkError},
    primitives::ByteStream,
    types::{CompletedMultipartUpload, CompletedPart},
};
use bytes::Bytes;

use crate::{
    error::{Error, ErrorKind, Result},
    store::Store,
};

/// Bytes of each part but the last one.
const PART_BYTES: usize = 8 << 20;
/// The most parts of an object in S3.
const MAX_PARTS: usize = 10_000;

/// An object that is written from its start to its end. Nothing of it exists before [`finish`](Self::finish).
///
/// It takes 8 MiB of memory, and is sent in parts if it is longer. An upload that is dropped leaves its parts in the store: end it by
/// [`abort`](Self::abort).
#[derive(Debug)]
#[must_use]
pub struct Upload {
    store: Store,
    bucket: String,
    key: String,
    /// Bytes that have not been sent.
    buffer: Vec<u8>,
    parts: Option<Parts>,
}

/// Parts that have been sent.
#[derive(Debug)]
struct Parts {
    upload_id: String,
    sent: Vec<CompletedPart>,
}

impl Store {
    /// Begins to write an object, in place of an old one. Sends nothing yet.
    pub fn upload(&self, bucket: &str, key: &str) -> Upload {
        Upload {
            store: self.clone(),
            bucket: bucket.to_owned(),
            key: key.to_owned(),
            buffer: Vec::new(),
            parts: None,
        }
    }
}

impl Upload {
    /// Adds bytes at the end.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] with the store's message, [`ErrorKind::Unreachable`] or [`ErrorKind::Unavailable`] after retries;
    /// [`ErrorKind::Config`] for an object of more than 78 GiB.
    pub async fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let (taken, rest) = bytes.split_at(bytes.len().min(PART_BYTES - self.buffer.len()));
            self.buffer.extend_from_slice(taken);
            bytes = rest;
            if self.buffer.len() == PART_BYTES {
                self.send_part().await?;
            }
        }
        Ok(())
    }

    /// Ends the object. If that fails, nothing of it is left.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub async fn finish(mut self) -> Result<()> {
        let completed = self.complete().await;
        if completed.is_err() {
            // The first error says more.
            drop(self.abort().await);
        }
        completed
    }

    /// Ends the upload without an object.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub async fn abort(self) -> Result<()> {
        if let Some(Parts { upload_id, .. }) = &self.parts {
            self.send(|sdk| {
                let request = sdk.abort_multipart_upload();
                let request = request.bucket(&self.bucket).key(&self.key);
                request.upload_id(upload_id).send()
            })
            .await?;
        }
        Ok(())
    }

    async fn complete(&mut self) -> Result<()> {
        if self.parts.is_none() {
            let body = self.take_buffer();
            self.send(|sdk| {
                let request = sdk.put_object();
                let request = request.bucket(&self.bucket).key(&self.key);
                request.body(ByteStream::from(body.clone())).send()
            })
            .await?;
            return Ok(());
        }
        if !self.buffer.is_empty() {
            self.send_part().await?;
        }
        if let Some(Parts { upload_id, sent }) = &self.parts {
            self.send(|sdk| {
                let parts = CompletedMultipartUpload::builder().set_parts(Some(sent.clone()));
                let request = sdk.complete_multipart_upload();
                let request = request.bucket(&self.bucket).key(&self.key);
                request
                    .upload_id(upload_id)
                    .multipart_upload(parts.build())
                    .send()
            })
            .await?;
        }
        Ok(())
    }

    /// Sends the buffer as a part.
    async fn send_part(&mut self) -> Result<()> {
        let mut parts = match self.parts.take() {
            Some(parts) => parts,
            None => self.begin().await?,
        };
        let sent = self.send_next(&parts).await;
        let sent = sent.map(|part| parts.sent.push(part));
        self.parts = Some(parts);
        sent
    }

    /// Sends the buffer as the part after these.
    async fn send_next(&mut self, Parts { upload_id, sent }: &Parts) -> Result<CompletedPart> {
        let number = i32::try_from(sent.len() + 1).ok();
        let number = number.filter(|_| sent.len() < MAX_PARTS).ok_or_else(|| {
            let text = format!(
                "cannot {}: expected at most {MAX_PARTS} parts of {PART_BYTES} bytes",
                self.action()
            );
            Error::new(ErrorKind::Config, text)
        })?;
        let body = self.take_buffer();
        let send = |sdk: Client| {
            let request = sdk.upload_part();
            let request = request.bucket(&self.bucket).key(&self.key);
            let request = request.upload_id(upload_id).part_number(number);
            request.body(ByteStream::from(body.clone())).send()
        };
        let sent = self.send(send).await?;
        let part = CompletedPart::builder().part_number(number).set_e_tag(sent.e_tag);
        Ok(part.build())
    }

    /// Begins to send parts.
    async fn begin(&self) -> Result<Parts> {
        let send = |sdk: Client| {
            let request = sdk.create_multipart_upload();
            request.bucket(&self.bucket).key(&self.key).send()
        };
        let begun = self.send(send).await?;
        let upload_id = begun.upload_id.ok_or_else(|| {
            Error::protocol(format!("cannot {}: the answer has no upload ID", self.action()))
        })?;
        Ok(Parts {
            upload_id,
            sent: Vec::new(),
        })
    }

    fn take_buffer(&mut self) -> Bytes {
        mem::take(&mut self.buffer).into()
    }

    /// Sends a request, with retries.
    async fn send<T, E, F>(&self, send: impl Fn(Client) -> F + Sync) -> Result<T>
    where
        T: Send,
        E: ProvideErrorMetadata + std::error::Error + Send + 'static,
        F: Future<Output = Result<T, SdkError<E, HttpResponse>>> + Send,
    {
        let action = self.action();
        self.store.with_sdk_retries(&self.bucket, &action, send).await
    }

    /// What an error says that cannot be done.
    fn action(&self) -> String {
        format!("write s3://{}/{}", self.bucket, self.key)
    }
}
