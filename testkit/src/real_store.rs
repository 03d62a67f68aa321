//! A real store with accounts: an owner, a reader and a guest.

use std::{net::SocketAddr, path::Path, slice::from_ref};

use anyhow::{Context, Result, bail, ensure};

use serde_json::{Value, json};

use crate::{
    child_store::ChildStore,
    gateway::Gateway,
    juicefs::JuiceFs,
    raw::Request,
    sign::{Keys, Payload},
    weed::Weed,
    world::{ACCESS_KEY, BUCKET, SECRET_KEY},
};

/// A running store that no gateway stands in front of.
#[derive(Debug)]
pub struct RealStore {
    /// Has all rights.
    pub owner: Keys,
    /// May read until its right is withdrawn.
    pub reader: Keys,
    /// May read nothing.
    pub guest: Keys,
    server: Server,
}

#[derive(Debug)]
enum Server {
    /// A gateway, for its embedded store alone.
    Embedded(Gateway),
    SeaweedFs(Weed),
    JuiceFs(JuiceFs),
    Ceph(ChildStore),
    Garage(ChildStore),
}

impl RealStore {
    /// Starts the embedded store of the gateway `binary`. It has one account, so that the reader is the owner, and the guest
    /// is unknown.
    pub fn embedded(binary: &Path) -> Result<Self> {
        let owner = owner();
        let gateway = Gateway::embedded(binary, &owner, [""; 0])?;
        Ok(Self {
            reader: owner.clone(),
            guest: guest(),
            owner,
            server: Server::Embedded(gateway),
        })
    }

    /// Starts SeaweedFS, where the reader has all rights that the owner has.
    pub fn seaweedfs() -> Result<Self> {
        let (owner, reader, guest) = (owner(), reader(), guest());
        let weed = Weed::launch_with_guests(&[owner.clone(), reader.clone()], from_ref(&guest))?;
        Ok(Self {
            owner,
            reader,
            guest,
            server: Server::SeaweedFs(weed),
        })
    }

    /// Starts `JuiceFS`, where the reader has no right yet.
    pub fn juicefs() -> Result<Self> {
        let (owner, reader, guest) = (owner(), reader(), guest());
        let store = JuiceFs::launch(&owner, &[reader.clone(), guest.clone()])?;
        Ok(Self {
            owner,
            reader,
            guest,
            server: Server::JuiceFs(store),
        })
    }

    /// Starts Ceph's S3 gateway, where the reader has no right yet. The owner may create roles.
    pub fn ceph() -> Result<Self> {
        let (owner, reader, guest) = (owner(), reader(), guest());
        let store = ChildStore::launch("ceph", &[&owner, &reader, &guest])?;
        Ok(Self {
            owner,
            reader,
            guest,
            server: Server::Ceph(store),
        })
    }

    /// Starts Garage, where the reader has no right yet.
    pub fn garage() -> Result<Self> {
        // Other keys than these Garage refuses.
        let keys = |digit: &str| Keys::new(&format!("GK{}", digit.repeat(24)), &digit.repeat(64));
        let (owner, reader, guest) = (keys("a"), keys("b"), keys("c"));
        let store = ChildStore::launch("garage", &[&owner, &reader, &guest])?;
        Ok(Self {
            owner,
            reader,
            guest,
            server: Server::Garage(store),
        })
    }

    /// Address of its S3 endpoint.
    pub fn address(&self) -> Result<SocketAddr> {
        match &self.server {
            Server::Embedded(gateway) => gateway.store().context("no store address in the ready file"),
            Server::SeaweedFs(weed) => Ok(weed.address()),
            Server::JuiceFs(store) => Ok(store.address()),
            Server::Ceph(store) | Server::Garage(store) => store.address(),
        }
    }

    /// Whether rights can be granted and withdrawn.
    pub fn has_accounts(&self) -> bool {
        !matches!(self.server, Server::Embedded(_))
    }

    /// Grants the reader the right to read objects in [`BUCKET`], or withdraws it. It takes effect soon after.
    pub fn set_read_right(&self, can_read: bool) -> Result<()> {
        let Self {
            owner, reader, guest, ..
        } = self;
        match &self.server {
            Server::Embedded(_) => bail!("the embedded store has one account, whose rights cannot change"),
            Server::SeaweedFs(weed) if can_read => {
                weed.set_identities(&[owner.clone(), reader.clone()], from_ref(guest))
            }
            Server::SeaweedFs(weed) => weed.set_identities(from_ref(owner), &[reader.clone(), guest.clone()]),
            Server::JuiceFs(store) => store.set_read_right(reader, can_read),
            Server::Ceph(_) if can_read => {
                let policy = json!({
                    "Version": "2012-10-17",
                    "Statement": [{
                        "Effect": "Allow",
                        "Principal": { "AWS": [format!("arn:aws:iam:::user/{}", reader.access)] },
                        "Action": ["s3:GetObject"],
                        "Resource": [format!("arn:aws:s3:::{BUCKET}/*")],
                    }],
                });
                self.change(
                    "PUT",
                    &format!("/{BUCKET}?policy"),
                    policy.to_string().into(),
                    204,
                )
            }
            Server::Ceph(_) => self.change("DELETE", &format!("/{BUCKET}?policy"), Vec::new(), 200),
            Server::Garage(store) if can_read => {
                set_garage_rights(store, "AllowBucketKey", reader, &["read"])
            }
            Server::Garage(store) => set_garage_rights(store, "DenyBucketKey", reader, &["read"]),
        }
    }

    /// Creates a bucket, or adds or replaces an object.
    pub fn put(&self, path: &str, body: impl Into<Vec<u8>>) -> Result<()> {
        if let Server::Garage(store) = &self.server
            && path.trim_start_matches('/') == BUCKET
        {
            // One that an account creates through S3 exists for this account alone.
            ask_garage(store, "CreateBucket", &json!({ "globalAlias": BUCKET }))?;
            return set_garage_rights(store, "AllowBucketKey", &self.owner, &["read", "write", "owner"]);
        }
        self.change("PUT", path, body.into(), 200)
    }

    /// Deletes an object.
    pub fn delete(&self, path: &str) -> Result<()> {
        self.change("DELETE", path, Vec::new(), 204)
    }

    fn change(&self, method: &str, path: &str, body: Vec<u8>, status: u16) -> Result<()> {
        let address = self.address()?;
        let request = Request::new(method, path)
            .header("Host", &address.to_string())
            .body(body);
        let answer = self.owner.sign(request, Payload::Signed)?.send(address)?;
        ensure!(
            answer.status == status,
            "{method} {path}: expected {status}, found {} {}",
            answer.status,
            answer.text()
        );
        Ok(())
    }
}

/// Adds rights on [`BUCKET`] to those of an account, or removes them.
fn set_garage_rights(store: &ChildStore, operation: &str, keys: &Keys, rights: &[&str]) -> Result<()> {
    let bucket = ask_garage(
        store,
        &format!("GetBucketInfo?globalAlias={BUCKET}"),
        &Value::Null,
    )?;
    let rights: serde_json::Map<_, _> = rights
        .iter()
        .map(|right| ((*right).to_owned(), Value::Bool(true)))
        .collect();
    let body = json!({ "bucketId": bucket["id"], "accessKeyId": keys.access, "permissions": rights });
    ask_garage(store, operation, &body).map(drop)
}

/// Sends a request to Garage's admin API, a GET if the body is null.
fn ask_garage(store: &ChildStore, operation: &str, body: &Value) -> Result<Value> {
    let (admin, token) = (store.text("admin")?, store.text("token")?);
    let (method, body) = if body.is_null() {
        ("GET", String::new())
    } else {
        ("POST", body.to_string())
    };
    let request = Request::new(method, &format!("/v2/{operation}"))
        .header("Host", admin)
        .header("Authorization", &format!("Bearer {token}"))
        .body(body);
    let answer = request.send(admin.parse()?)?;
    ensure!(
        answer.status == 200,
        "{operation}: expected 200, found {} {}",
        answer.status,
        answer.text()
    );
    Ok(serde_json::from_slice(&answer.body)?)
}

fn owner() -> Keys {
    Keys::new(ACCESS_KEY, SECRET_KEY)
}

fn reader() -> Keys {
    Keys::new("pushdownreaderkey", "pushdownreadersecret")
}

fn guest() -> Keys {
    Keys::new("guestkey", "guestsecret")
}
