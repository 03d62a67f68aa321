//! The operations of the store: those of s3s-fs, but for what it does otherwise than S3.
//!
//! - Listings have ETags, pages of at most 1,000 entries, and names that are encoded if the request asks for it.
//! - An ETag changes with the content of a file, also of one that came into the folder without a request.
//! - Keys that a folder cannot hold are errors that say so, and never another key's object.
//! - A folder is an object only if a request has made it one.

mod listings;
mod writes;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use s3s::dto::{
    AbortMultipartUploadInput, AbortMultipartUploadOutput, CompleteMultipartUploadInput,
    CompleteMultipartUploadOutput, CopyObjectInput, CopyObjectOutput, CopySource, CreateBucketInput,
    CreateBucketOutput, CreateMultipartUploadInput, CreateMultipartUploadOutput, DeleteBucketInput,
    DeleteBucketOutput, DeleteObjectInput, DeleteObjectOutput, DeleteObjectsInput, DeleteObjectsOutput,
    DeletedObject, ETag, GetBucketLocationInput, GetBucketLocationOutput, GetObjectInput, GetObjectOutput,
    HeadBucketInput, HeadBucketOutput, HeadObjectInput, HeadObjectOutput, ListBucketsInput,
    ListBucketsOutput, ListObjectsInput, ListObjectsOutput, ListObjectsV2Input, ListObjectsV2Output,
    ListPartsInput, ListPartsOutput, PutObjectInput, PutObjectOutput, StreamingBlob, UploadPartCopyInput,
    UploadPartCopyOutput, UploadPartInput, UploadPartOutput,
};
use s3s::{Body, S3, S3Error, S3Request, S3Response, S3Result, s3_error};
use s3s_fs::FileSystem;

use super::{
    attributes::{Attributes, EMPTY_ETAG},
    keys,
};

/// How often a read is tried again because its object is replaced meanwhile.
const READ_ATTEMPTS: usize = 10;

/// s3s-fs on a folder.
#[derive(Debug)]
pub(super) struct FolderStore {
    files: FileSystem,
    /// The canonical path of the folder.
    root: Arc<Path>,
}

impl FolderStore {
    /// # Errors
    /// If the folder does not exist.
    pub(super) fn new(files: FileSystem, directory: &Path) -> io::Result<Self> {
        Ok(Self {
            files,
            root: directory.canonicalize()?.into(),
        })
    }

    /// The attributes of an object, if there is one.
    async fn attributes(&self, bucket: &str, key: &str) -> S3Result<Option<Attributes>> {
        let (bucket, key) = (bucket.to_owned(), key.to_owned());
        self.blocking(move |root| Attributes::read(root, &bucket, &key))
            .await
    }

    /// The same.
    ///
    /// # Errors
    /// `NoSuchKey` or `NoSuchBucket` if it does not exist.
    async fn existing(&self, bucket: &str, key: &str) -> S3Result<Attributes> {
        let found = self.attributes(bucket, key).await?;
        found.ok_or_else(|| self.missing(bucket))
    }

    /// Runs what waits for the disk.
    #[expect(
        clippy::disallowed_methods,
        reason = "it waits, and computes nothing; the store is no part of the gateway's own work"
    )]
    async fn blocking<T: Send + 'static>(
        &self,
        run: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
    ) -> S3Result<T> {
        let root = Arc::clone(&self.root);
        let done = tokio::task::spawn_blocking(move || run(&root)).await;
        done.map_err(S3Error::internal_error)?
            .map_err(S3Error::internal_error)
    }

    /// The answer to a read, and the attributes of the version of the object that it is about.
    async fn read<T, F: Future<Output = S3Result<T>>>(
        &self,
        bucket: &str,
        key: &str,
        read: impl Fn() -> F,
    ) -> S3Result<(Attributes, T)> {
        for _ in 0..READ_ATTEMPTS {
            let before = self.existing(bucket, key).await?;
            let answer = read().await;
            if self.attributes(bucket, key).await?.as_ref() == Some(&before) {
                return Ok((before, answer?));
            }
        }
        Err(s3_error!(SlowDown, "The object is being replaced."))
    }

    fn missing(&self, bucket: &str) -> S3Error {
        if self.bucket(bucket).is_dir() {
            s3_error!(NoSuchKey)
        } else {
            s3_error!(NoSuchBucket)
        }
    }

    fn bucket(&self, bucket: &str) -> PathBuf {
        self.root.join(bucket)
    }
}

/// The same request with another input.
fn with_input<T, U>(request: &S3Request<T>, input: U) -> S3Request<U> {
    S3Request {
        input,
        method: request.method.clone(),
        uri: request.uri.clone(),
        headers: request.headers.clone(),
        extensions: request.extensions.clone(),
        credentials: request.credentials.clone(),
        region: request.region.clone(),
        service: request.service.clone(),
        trailing_headers: None,
    }
}

#[async_trait::async_trait]
impl S3 for FolderStore {
    async fn get_object(&self, request: S3Request<GetObjectInput>) -> S3Result<S3Response<GetObjectOutput>> {
        let GetObjectInput { bucket, key, .. } = &request.input;
        if keys::is_folder(key) {
            let folder = self.existing(bucket, key).await?;
            return Ok(S3Response::new(GetObjectOutput {
                body: Some(StreamingBlob::from(Body::empty())),
                content_length: Some(0),
                last_modified: Some(folder.modified.into()),
                e_tag: Some(ETag::Strong(EMPTY_ETAG.to_owned())),
                ..GetObjectOutput::default()
            }));
        }
        let read = || self.files.get_object(with_input(&request, request.input.clone()));
        let (attributes, mut answer) = self.read(bucket, key, read).await?;
        if !attributes.is_uploaded {
            answer.output = GetObjectOutput {
                e_tag: Some(ETag::Strong(attributes.etag)),
                checksum_crc32: None,
                checksum_crc32c: None,
                checksum_crc64nvme: None,
                checksum_sha1: None,
                checksum_sha256: None,
                ..answer.output
            };
        }
        Ok(answer)
    }

    async fn head_object(
        &self,
        request: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        let HeadObjectInput { bucket, key, .. } = &request.input;
        if keys::is_folder(key) {
            let folder = self.existing(bucket, key).await?;
            return Ok(S3Response::new(HeadObjectOutput {
                content_length: Some(0),
                last_modified: Some(folder.modified.into()),
                e_tag: Some(ETag::Strong(EMPTY_ETAG.to_owned())),
                ..HeadObjectOutput::default()
            }));
        }
        let read = || {
            self.files
                .head_object(with_input(&request, request.input.clone()))
        };
        let (attributes, mut answer) = self.read(bucket, key, read).await?;
        if !attributes.is_uploaded {
            answer.output = HeadObjectOutput {
                e_tag: Some(ETag::Strong(attributes.etag)),
                checksum_crc32: None,
                checksum_crc32c: None,
                checksum_crc64nvme: None,
                checksum_sha1: None,
                checksum_sha256: None,
                ..answer.output
            };
        }
        Ok(answer)
    }

    async fn list_objects(
        &self,
        request: S3Request<ListObjectsInput>,
    ) -> S3Result<S3Response<ListObjectsOutput>> {
        self.first_listing(request.input).await.map(S3Response::new)
    }

    async fn list_objects_v2(
        &self,
        request: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        self.second_listing(request.input).await.map(S3Response::new)
    }

    async fn put_object(
        &self,
        mut request: S3Request<PutObjectInput>,
    ) -> S3Result<S3Response<PutObjectOutput>> {
        let PutObjectInput {
            bucket,
            key,
            if_match,
            ..
        } = &mut request.input;
        self.prepare_write(bucket, key, false).await?;
        self.check_if_match(bucket, key, if_match).await?;
        if !keys::is_folder(key) {
            return self.files.put_object(request).await;
        }
        let (bucket, key) = (bucket.clone(), key.clone());
        let mut answer = self.files.put_object(request).await?;
        self.mark_folder(bucket, key).await?;
        answer.output.e_tag = Some(ETag::Strong(EMPTY_ETAG.to_owned()));
        Ok(answer)
    }

    async fn copy_object(
        &self,
        mut request: S3Request<CopyObjectInput>,
    ) -> S3Result<S3Response<CopyObjectOutput>> {
        self.prepare_copy(&mut request.input).await?;
        self.files.copy_object(request).await
    }

    async fn delete_object(
        &self,
        request: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        let DeleteObjectInput { bucket, key, .. } = request.input;
        self.remove(&bucket, &key).await?;
        Ok(S3Response::new(DeleteObjectOutput::default()))
    }

    async fn delete_objects(
        &self,
        request: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        let DeleteObjectsInput { bucket, delete, .. } = request.input;
        let mut deleted = Vec::with_capacity(delete.objects.len());
        for object in delete.objects {
            self.remove(&bucket, &object.key).await?;
            deleted.push(DeletedObject {
                key: Some(object.key),
                version_id: object.version_id,
                ..DeletedObject::default()
            });
        }
        Ok(S3Response::new(DeleteObjectsOutput {
            deleted: Some(deleted),
            ..DeleteObjectsOutput::default()
        }))
    }

    async fn create_multipart_upload(
        &self,
        request: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        let CreateMultipartUploadInput { bucket, key, .. } = &request.input;
        self.prepare_upload(bucket, key).await?;
        self.files.create_multipart_upload(request).await
    }

    async fn complete_multipart_upload(
        &self,
        mut request: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        let CompleteMultipartUploadInput {
            bucket,
            key,
            if_match,
            ..
        } = &mut request.input;
        self.prepare_upload(bucket, key).await?;
        self.check_if_match(bucket, key, if_match).await?;
        self.files.complete_multipart_upload(request).await
    }

    async fn upload_part_copy(
        &self,
        request: S3Request<UploadPartCopyInput>,
    ) -> S3Result<S3Response<UploadPartCopyOutput>> {
        if let CopySource::Bucket { bucket, key, .. } = &request.input.copy_source {
            self.existing(bucket, key).await?;
        }
        self.files.upload_part_copy(request).await
    }

    async fn upload_part(
        &self,
        request: S3Request<UploadPartInput>,
    ) -> S3Result<S3Response<UploadPartOutput>> {
        self.files.upload_part(request).await
    }

    async fn list_parts(&self, request: S3Request<ListPartsInput>) -> S3Result<S3Response<ListPartsOutput>> {
        self.files.list_parts(request).await
    }

    async fn abort_multipart_upload(
        &self,
        request: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        self.files.abort_multipart_upload(request).await
    }

    async fn create_bucket(
        &self,
        request: S3Request<CreateBucketInput>,
    ) -> S3Result<S3Response<CreateBucketOutput>> {
        self.files.create_bucket(request).await
    }

    async fn delete_bucket(
        &self,
        request: S3Request<DeleteBucketInput>,
    ) -> S3Result<S3Response<DeleteBucketOutput>> {
        let bucket = request.input.bucket.clone();
        let answer = self.files.delete_bucket(request).await?;
        self.forget_bucket(bucket).await?;
        Ok(answer)
    }

    async fn get_bucket_location(
        &self,
        request: S3Request<GetBucketLocationInput>,
    ) -> S3Result<S3Response<GetBucketLocationOutput>> {
        self.files.get_bucket_location(request).await
    }

    async fn head_bucket(
        &self,
        request: S3Request<HeadBucketInput>,
    ) -> S3Result<S3Response<HeadBucketOutput>> {
        self.files.head_bucket(request).await
    }

    async fn list_buckets(
        &self,
        request: S3Request<ListBucketsInput>,
    ) -> S3Result<S3Response<ListBucketsOutput>> {
        self.files.list_buckets(request).await
    }
}
