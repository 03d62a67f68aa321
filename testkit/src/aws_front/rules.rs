//! What a front refuses: signatures, and places of buckets.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use super::address::{Address, is_label};
use super::refusal::Refusal;
use super::sessions::{SessionError, Sessions};
use crate::raw::Request;
use crate::sign::{Authorization, CONTENT_SHA256, Keys, Presigned, SECURITY_TOKEN, signing_time};

/// Largest difference between the time of a signature and now.
const MAX_SKEW: Duration = Duration::from_mins(15);

/// The answer to a request for a bucket of another region. `HEAD` has no document, so all its answers name the region in
/// `x-amz-bucket-region`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MovedAnswer {
    /// 301 `PermanentRedirect`, with the region in `x-amz-bucket-region`.
    #[default]
    Redirect,
    /// 400 `AuthorizationHeaderMalformed`, with the region in the document.
    Malformed,
}

/// Longest validity of a presigned request.
const MAX_EXPIRES: Duration = Duration::from_hours(7 * 24);

/// The credentials that a front knows.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownKeys<'a> {
    pub(super) sessions: &'a Sessions,
    /// Those of the store.
    pub(super) store: &'a Keys,
}

/// Where buckets are, and what else the front accepts.
#[derive(Debug)]
pub(super) struct Rules {
    home: String,
    /// Regions of the buckets outside `home`.
    regions: HashMap<String, String>,
    newly_created: HashSet<String>,
    /// Where redirections lead.
    redirect_target: SocketAddr,
    pub(super) moved_answer: MovedAnswer,
    pub(super) accepts_store_keys: bool,
}

impl Rules {
    pub(super) fn new(home: &str, redirect_target: SocketAddr) -> Self {
        Self {
            home: home.to_owned(),
            regions: HashMap::new(),
            newly_created: HashSet::new(),
            redirect_target,
            moved_answer: MovedAnswer::default(),
            accepts_store_keys: false,
        }
    }

    /// The region of buckets that were not moved.
    pub(super) fn home(&self) -> &str {
        &self.home
    }

    pub(super) fn move_bucket(&mut self, bucket: &str, region: &str) {
        self.regions.insert(bucket.to_owned(), region.to_owned());
    }

    pub(super) fn set_newly_created(&mut self, bucket: &str, is_newly_created: bool) {
        if is_newly_created {
            self.newly_created.insert(bucket.to_owned());
        } else {
            self.newly_created.remove(bucket);
        }
    }

    /// Verifies the signature of a request to a host of `region`, and returns its access key.
    pub(super) fn check_signature(
        &self,
        request: &Request,
        region: &str,
        known: KnownKeys<'_>,
    ) -> Result<String, Refusal> {
        let denied = |message: &str| Refusal::new("403 Forbidden", "AccessDenied", message);
        let authorization = Authorization::parse(request).ok_or_else(|| denied("Access Denied"))?;
        let time = signing_time(request)
            .ok_or_else(|| denied("AWS authentication requires a valid Date or x-amz-date header"))?;
        if request.header_value(CONTENT_SHA256).is_none() {
            let message = "Missing required header for this request: x-amz-content-sha256";
            return Err(Refusal::new("400 Bad Request", "InvalidRequest", message));
        }
        let is_required = |name: &str| name == "host" || name == "content-type" || name.starts_with("x-amz-");
        let mut names = request.headers.iter().map(|(name, _)| name.to_ascii_lowercase());
        if let Some(name) = names.find(|name| is_required(name) && !authorization.has_signed(name)) {
            let message = "There were headers present in the request which were not signed";
            return Err(denied(message).element("HeadersNotSigned", name));
        }
        let token = request.header_value(SECURITY_TOKEN);
        let keys = self.keys_of(&authorization.access_key, token, known)?;
        if authorization.region != region {
            return Err(Refusal::wrong_region(&authorization.region, region));
        }
        let now = SystemTime::now();
        let age = now.duration_since(time).or_else(|_| time.duration_since(now));
        if age.is_ok_and(|age| age > MAX_SKEW) {
            let message = "The difference between the request time and the current time is too large.";
            return Err(Refusal::new("403 Forbidden", "RequestTimeTooSkewed", message));
        }
        if keys.has_signed(request).is_ok_and(|has_signed| has_signed) {
            return Ok(keys.access);
        }
        Err(wrong_signature(keys, region))
    }

    /// Verifies the signature of a presigned request to a host of `region`, and returns its access key.
    pub(super) fn check_presigned(
        &self,
        request: &Request,
        presigned: &Presigned,
        region: &str,
        known: KnownKeys<'_>,
    ) -> Result<String, Refusal> {
        let denied = |message: &str| Refusal::new("403 Forbidden", "AccessDenied", message);
        let is_required = |name: &str| name == "host" || name.starts_with("x-amz-");
        let mut names = request.headers.iter().map(|(name, _)| name.to_ascii_lowercase());
        if let Some(name) = names.find(|name| is_required(name) && !presigned.has_signed(name)) {
            let message = "There were headers present in the request which were not signed";
            return Err(denied(message).element("HeadersNotSigned", name));
        }
        let keys = self.keys_of(&presigned.access_key, presigned.token.as_deref(), known)?;
        if presigned.region != region {
            return Err(Refusal::wrong_query_region(&presigned.region, region));
        }
        let now = SystemTime::now();
        if presigned.time > now + MAX_SKEW {
            return Err(denied("Request is not valid yet"));
        }
        if presigned.expires.is_zero() || presigned.expires > MAX_EXPIRES {
            let message = "X-Amz-Expires must be between 1 and 604800 seconds";
            return Err(Refusal::new(
                "400 Bad Request",
                "AuthorizationQueryParametersError",
                message,
            ));
        }
        if presigned.time + presigned.expires <= now {
            let seconds = presigned.expires.as_secs().to_string();
            return Err(denied("Request has expired").element("X-Amz-Expires", seconds));
        }
        let has_signed = keys.has_presigned(request, presigned);
        if has_signed.is_ok_and(|has_signed| has_signed) {
            return Ok(keys.access);
        }
        Err(wrong_signature(keys, region))
    }

    /// The credentials that a request with this access key and this token must be signed with.
    fn keys_of(&self, access_key: &str, token: Option<&str>, known: KnownKeys<'_>) -> Result<Keys, Refusal> {
        if self.accepts_store_keys && token.is_none() && access_key == known.store.access {
            return Ok(known.store.clone());
        }
        let session = known.sessions.get(access_key, token);
        session.map_err(|error| refuse_session(error, access_key, token))
    }

    /// Checks that the bucket of a request is where the request was sent to.
    pub(super) fn check_place(&self, request: &Request, address: &Address) -> Result<(), Refusal> {
        let Some(bucket) = address.bucket.as_deref() else {
            return Ok(());
        };
        let place = self.regions.get(bucket).map_or(&*self.home, String::as_str);
        let host = request.header_value("host").unwrap_or_default();
        let location = format!("http://{}{}", self.redirect_target, address.target);
        if *place != address.region {
            let endpoint = host.replacen(&address.region, place, 1);
            return Err(match self.moved_answer {
                MovedAnswer::Redirect => {
                    Refusal::permanent_redirect(bucket, endpoint, place).header("Location", location)
                }
                MovedAnswer::Malformed if request.method == "HEAD" => {
                    Refusal::wrong_region(&address.region, place).header("x-amz-bucket-region", place)
                }
                MovedAnswer::Malformed => Refusal::wrong_region(&address.region, place),
            });
        }
        if self.newly_created.contains(bucket) {
            let message = "Please re-send this request to the specified temporary endpoint. \
                           Continue to use the original request endpoint for future requests.";
            return Err(
                Refusal::new("307 Temporary Redirect", "TemporaryRedirect", message)
                    .element("Endpoint", self.redirect_target.to_string())
                    .element("Bucket", bucket)
                    .header("x-amz-bucket-region", place)
                    .header("Location", location),
            );
        }
        if !address.is_virtual_host && is_label(bucket) {
            let endpoint = format!("{bucket}.{host}");
            return Err(Refusal::permanent_redirect(bucket, endpoint, place).header("Location", location));
        }
        Ok(())
    }
}

fn wrong_signature(keys: Keys, region: &str) -> Refusal {
    let message = "The request signature we calculated does not match the signature you provided. \
                   Check your key and signing method.";
    Refusal::new("403 Forbidden", "SignatureDoesNotMatch", message)
        .element("AWSAccessKeyId", keys.access)
        .element("StringToSign", format!("AWS4-HMAC-SHA256\n{region}"))
}

fn refuse_session(error: SessionError, access_key: &str, token: Option<&str>) -> Refusal {
    let bad_request = |code, message: &str| {
        Refusal::new("400 Bad Request", code, message).element("Token-0", token.unwrap_or_default())
    };
    match error {
        SessionError::Unknown => {
            let message = "The AWS Access Key Id you provided does not exist in our records.";
            Refusal::new("403 Forbidden", "InvalidAccessKeyId", message).element("AWSAccessKeyId", access_key)
        }
        SessionError::InvalidToken => bad_request(
            "InvalidToken",
            "The provided token is malformed or otherwise invalid.",
        ),
        SessionError::Expired => bad_request("ExpiredToken", "The provided token has expired."),
    }
}
