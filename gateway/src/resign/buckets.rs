//! The answer to `ListBuckets`, without the buckets that the caller's key has no grant for.

use std::sync::Arc;

use http::Response;
use pushdown_s3::xml::{UnknownEntity, text_of};
use quick_xml::{Reader, events::Event};

use super::answers::{self, invalid};
use crate::{access::Key, body::Body, error::Result};

/// Filters the list of buckets for a key.
#[derive(Debug, Clone)]
pub struct BucketFilter(Arc<Key>);

impl BucketFilter {
    /// A filter of the answer to a request of this key.
    pub(super) fn new(key: &Arc<Key>) -> Self {
        Self(Arc::clone(key))
    }

    /// Removes the buckets that the key cannot see. Refusals of the store pass unchanged.
    ///
    /// # Errors
    /// [`ErrorKind::OriginUnavailable`](crate::error::ErrorKind::OriginUnavailable) for an answer that is no list of buckets.
    pub async fn apply(&self, answer: Response<Body>) -> Result<Response<Body>> {
        if !answer.status().is_success() {
            return Ok(answer);
        }
        let (parts, body) = answer.into_parts();
        let document = answers::read_document(&parts.headers, body).await?;
        let visible = filter(&document, &self.0).ok_or_else(|| invalid("a list of buckets"))?;
        Ok(answers::replace_document(parts, visible))
    }
}

/// The document without the `Bucket` elements that the key cannot see. All else stays byte for byte. `None` if it is malformed.
fn filter(document: &str, key: &Key) -> Option<String> {
    // The reader skips it without counting it.
    let document = document.strip_prefix('\u{feff}').unwrap_or(document);
    let mut reader = Reader::from_str(document);
    let mut visible = String::with_capacity(document.len());
    let (mut copied, mut depth, mut has_root) = (0, 0_usize, false);
    loop {
        let start = index(reader.buffer_position())?;
        let is_hidden = match reader.read_event().ok()? {
            Event::Eof => break,
            Event::Start(element) if depth > 0 && element.local_name().into_inner() == b"Bucket" => {
                let content = reader.read_to_end(element.name()).ok()?;
                let content = document.get(index(content.start)?..index(content.end)?)?;
                !can_see(key, content)?
            }
            event @ (Event::Start(_) | Event::Empty(_)) if depth == 0 => {
                if has_root || !is_root(&event) {
                    return None;
                }
                has_root = true;
                depth = usize::from(matches!(event, Event::Start(_)));
                false
            }
            Event::Empty(element) => element.local_name().into_inner() == b"Bucket",
            Event::Start(_) => {
                depth += 1;
                false
            }
            Event::End(_) => {
                depth = depth.checked_sub(1)?;
                false
            }
            _ => false,
        };
        if is_hidden {
            visible.push_str(document.get(copied..start)?);
            copied = index(reader.buffer_position())?;
        }
    }
    if depth > 0 || !has_root {
        return None;
    }
    visible.push_str(document.get(copied..)?);
    Some(visible)
}

fn is_root(event: &Event<'_>) -> bool {
    matches!(event, Event::Start(element) | Event::Empty(element)
        if element.local_name().into_inner() == b"ListAllMyBucketsResult")
}

/// Whether the key can see the bucket of an element with this content. It sees none without a name.
fn can_see(key: &Key, content: &str) -> Option<bool> {
    let mut reader = Reader::from_str(content);
    reader.config_mut().expand_empty_elements = true;
    let (mut names, mut is_name): (Vec<String>, bool) = (Vec::new(), false);
    loop {
        match reader.read_event().ok()? {
            Event::Eof => break,
            Event::Start(element) => {
                is_name = element.local_name().into_inner() == b"Name";
                if is_name {
                    names.push(String::new());
                }
            }
            Event::End(_) => is_name = false,
            Event::Comment(_) => {}
            event => {
                if is_name && let Some(name) = names.last_mut() {
                    name.push_str(&text_of(&event, UnknownEntity::Refused)?);
                }
            }
        }
    }
    Some(!names.is_empty() && names.iter().all(|name| key.can_see_bucket(name)))
}

fn index(position: u64) -> Option<usize> {
    usize::try_from(position).ok()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http_body_util::BodyExt as _;

    use super::*;
    use crate::{access::Keys, body};

    const ACCESS_KEY: &str = "TESTTRAINER00001";

    /// A key with a grant for each of these buckets.
    fn key(buckets: &[&str]) -> Arc<Key> {
        let grants = buckets
            .iter()
            .map(|bucket| format!("[[key.grant]]\nbucket = {bucket:?}\nallow = [\"read\"]\n"));
        let text = format!(
            "[[key]]\naccess-key = \"{ACCESS_KEY}\"\nsecret = \"a-secret-of-a-test\"\nupstream = \"gateway\"\n{}",
            grants.collect::<Vec<_>>().concat()
        );
        Keys::from_text(&text).unwrap().get(ACCESS_KEY).unwrap()
    }

    fn bucket(name: &str) -> String {
        format!("<Bucket><Name>{name}</Name><CreationDate>2026-01-01T00:00:00.000Z</CreationDate></Bucket>")
    }

    /// A list of buckets with elements that no version of S3 has.
    fn list(buckets: &[&str]) -> String {
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListAllMyBucketsResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
             <Owner><ID>1</ID><Name>owner</Name></Owner><Buckets>\n{}</Buckets><Count>3</Count>\
             <ContinuationToken>hidden&amp;</ContinuationToken><New a=\"b\"/></ListAllMyBucketsResult>\n",
            buckets.concat()
        )
    }

    #[test]
    fn only_buckets_without_a_grant_are_removed() {
        let [photos, hidden, results] = ["photos", "hidden", "results"].map(bucket);
        let all = list(&[&photos, "\n ", &hidden, "<!-- é -->", &results]);
        let expected = list(&[&photos, "\n ", "<!-- é -->", &results]);
        assert_eq!(filter(&all, &key(&["photos", "results"])).unwrap(), expected);
        assert_eq!(
            filter(&format!("\u{feff}{all}"), &key(&["other"])).unwrap(),
            list(&["\n ", "<!-- é -->"])
        );
        assert_eq!(filter(&all, &key(&["*"])).unwrap(), all);
    }

    #[test]
    fn a_bucket_is_removed_unless_all_its_names_are_granted() {
        for hidden in [
            "<Bucket/>",
            "<Bucket></Bucket>",
            "<Bucket>photos</Bucket>",
            "<Bucket><Name/></Bucket>",
            "<Bucket><Name>photos2</Name></Bucket>",
            "<Bucket><Name> photos</Name></Bucket>",
            "<Bucket><Name>photos</Name><Name>hidden</Name></Bucket>",
            "<Bucket><Name>photos</Name><Bucket><Name>hidden</Name></Bucket></Bucket>",
            "<x:Bucket xmlns:x=\"y\"><x:Name>hidden</x:Name></x:Bucket>",
            "<Bucket a=\"b\"><Name>hid<!-- -->den</Name></Bucket>",
        ] {
            assert_eq!(filter(&list(&[hidden]), &key(&["photos"])).unwrap(), list(&[]));
        }
        for visible in [
            "<Bucket><Name>ph<![CDATA[oto]]>&#115;</Name></Bucket>",
            "<Bucket><BucketArn>arn:hidden</BucketArn><Name>photos</Name></Bucket>",
        ] {
            let list = list(&[visible]);
            assert_eq!(filter(&list, &key(&["photos"])).unwrap(), list);
        }
    }

    #[test]
    fn other_documents_are_refused() {
        let empty = "<ListAllMyBucketsResult/>";
        assert_eq!(filter(empty, &key(&["photos"])).as_deref(), Some(empty));
        for document in [
            "",
            "hidden",
            "<Error/>",
            "<Bucket><Name>photos</Name></Bucket>",
            "<ListAllMyBucketsResult><Buckets>",
            "<ListAllMyBucketsResult><Buckets><Bucket><Name>photos</Name></Buckets></ListAllMyBucketsResult>",
            "<ListAllMyBucketsResult><Bucket><Name>&photos;</Name></Bucket></ListAllMyBucketsResult>",
            "<Other><Bucket><Name>photos</Name></Bucket></Other>",
        ] {
            assert_eq!(filter(document, &key(&["photos"])), None, "{document}");
        }
    }

    #[tokio::test]
    async fn answers_of_the_store_are_filtered_and_refusals_are_not() {
        let filter = BucketFilter(key(&["photos"]));
        let all = list(&[&bucket("photos"), &bucket("hidden")]);
        let mut answer = Response::new(body::full(all.clone()));
        answer
            .headers_mut()
            .insert("content-length", HeaderValue::from(all.len()));
        let answer = filter.apply(answer).await.unwrap();
        assert!(!answer.headers().contains_key("content-length"));
        let text = answer.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(text, list(&[&bucket("photos")]).as_bytes());
        let mut refusal = Response::new(body::full("<Error/>"));
        *refusal.status_mut() = http::StatusCode::FORBIDDEN;
        let text = filter.apply(refusal).await.unwrap().into_body();
        assert_eq!(text.collect().await.unwrap().to_bytes(), "<Error/>");
        let mut compressed = Response::new(body::full(all));
        compressed
            .headers_mut()
            .insert("content-encoding", HeaderValue::from_static("gzip"));
        assert!(filter.apply(compressed).await.is_err());
    }
}
