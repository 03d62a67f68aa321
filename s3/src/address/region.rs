//! The region that the host of a store names.

/// Domains of AWS, the second one in China.
const AWS_DOMAINS: [&str; 2] = ["amazonaws.com", "amazonaws.com.cn"];

/// Whether a host belongs to AWS.
pub fn is_aws_host(host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    let is_below = |domain: &&str| host.strip_suffix(*domain).is_some_and(|rest| rest.ends_with('.'));
    AWS_DOMAINS.iter().any(is_below)
}

/// Whether a text is one label of a host name, in lower case.
pub fn is_label(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len())
        && text.bytes().all(is_inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// A host, with or without a port, in `region`, in place of the `configured` region after `s3.` or `s3.dualstack.`. The global host of AWS
/// is in any region. `None` if the host names no region, or `region` is no label.
pub fn authority_in_region(authority: &str, configured: &str, region: &str) -> Option<String> {
    if !is_label(region) {
        return None;
    }
    let global = format!("s3.{}", AWS_DOMAINS[0]);
    if authority.eq_ignore_ascii_case(&global) {
        return Some(format!("s3.{region}.{}", AWS_DOMAINS[0]));
    }
    let mut services = ["s3", "s3.dualstack"].into_iter();
    services.find_map(|service| {
        let rest = authority.strip_prefix(&format!("{service}.{configured}."))?;
        Some(format!("{service}.{region}.{rest}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_region_of_a_host_is_replaced() {
        let in_region = |authority| authority_in_region(authority, "us-east-1", "eu-central-1");
        for (authority, expected) in [
            ("s3.us-east-1.amazonaws.com", "s3.eu-central-1.amazonaws.com"),
            (
                "s3.dualstack.us-east-1.amazonaws.com",
                "s3.dualstack.eu-central-1.amazonaws.com",
            ),
            ("S3.amazonaws.com", "s3.eu-central-1.amazonaws.com"),
            ("s3.us-east-1.localhost:8080", "s3.eu-central-1.localhost:8080"),
        ] {
            assert_eq!(in_region(authority).as_deref(), Some(expected), "{authority}");
        }
        for authority in ["s3.us-west-2.amazonaws.com", "minio:9000", "us-east-1.s3.example"] {
            assert_eq!(in_region(authority), None, "{authority}");
        }
    }

    #[test]
    fn a_region_is_one_label() {
        for region in ["", "evil.example/", "a.b", "-a", "A"] {
            let found = authority_in_region("s3.us-east-1.amazonaws.com", "us-east-1", region);
            assert_eq!(found, None, "{region}");
        }
    }

    #[test]
    fn hosts_of_aws_are_known() {
        for host in ["s3.amazonaws.com", "S3.cn-north-1.AmazonAWS.com.cn"] {
            assert!(is_aws_host(host), "{host}");
        }
        for host in ["amazonaws.com", "xamazonaws.com", "minio"] {
            assert!(!is_aws_host(host), "{host}");
        }
    }
}
