//! What identifies a sample: for people, and for the draws of random steps.

use std::{borrow::Cow, fmt};

use crate::objects::Object;

/// The name of a sample in its bucket: `key`, or `key member NAME` for a member of a shard.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampleName<'a> {
    pub(crate) key: &'a str,
    pub(crate) member: Option<&'a str>,
}

impl<'a> From<Object<'a>> for SampleName<'a> {
    fn from(object: Object<'a>) -> Self {
        Self {
            key: object.key,
            member: object.member.map(|member| member.name),
        }
    }
}

impl fmt::Display for SampleName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key)?;
        match self.member {
            Some(member) => write!(f, " member {member}"),
            None => Ok(()),
        }
    }
}

/// The id of a sample for random draws, as at a gateway: the key, followed by `\0` and the name of a member.
pub fn draw_id(object: Object<'_>) -> Cow<'_, [u8]> {
    match object.member {
        Some(member) => Cow::Owned(member_draw_id(object.key, member.name)),
        None => Cow::Borrowed(object.key.as_bytes()),
    }
}

/// The same of the member with this name in a shard.
pub(crate) fn member_draw_id(key: &str, name: &str) -> Vec<u8> {
    [key.as_bytes(), name.as_bytes()].join(&0_u8)
}

#[cfg(test)]
mod tests {
    use pushdown::{shard::MemberRange, wire::sample_id};

    use super::*;
    use crate::{objects::MemberRef, sign::ObjectPaths};

    #[test]
    fn members_have_names_and_ids_of_their_own() {
        let object = Object {
            key: "train/a b.tar",
            bytes: Some(5),
            etag: None,
            member: None,
        };
        assert_eq!(SampleName::from(object).to_string(), "train/a b.tar");
        let member = Object {
            member: Some(MemberRef {
                name: "x/1.jpg",
                range: MemberRange::new(512, 512, 5).unwrap(),
            }),
            ..object
        };
        assert_eq!(
            SampleName::from(member).to_string(),
            "train/a b.tar member x/1.jpg"
        );
        let path = ObjectPaths::with_bucket("b").path(object.key);
        assert_eq!(*draw_id(object), sample_id(None, &path, None));
        assert_eq!(*draw_id(member), sample_id(None, &path, Some("x/1.jpg")));
    }
}
