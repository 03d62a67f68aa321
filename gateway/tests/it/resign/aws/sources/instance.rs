//! The metadata of EC2 instances.

use anyhow::{Result, ensure};

use super::{Lab, SHORT_LIFETIME, Variables};

pub(super) fn variables(lab: &Lab) -> Variables {
    vec![
        ("AWS_EC2_METADATA_DISABLED", "false".to_owned()),
        ("AWS_EC2_METADATA_SERVICE_ENDPOINT", lab.front.sources_url()),
    ]
}

#[test]
fn sessions_of_an_instance_are_renewed() -> Result<()> {
    let Some(lab) = Lab::start(SHORT_LIFETIME)? else {
        return Ok(());
    };
    let gateway = lab.launch(&variables(&lab))?;
    lab.first_signer(&gateway)?;
    for _ in 0..2 {
        let old = lab.front.issued();
        let signer = lab.next_signer(&gateway, &old)?;
        let issued = lab.front.issued();
        ensure!(issued.iter().any(|keys| keys.access == signer), "{signer}");
    }
    let requests = lab.front.source_requests();
    let lines: Vec<&str> = requests.iter().flat_map(|head| head.lines()).collect();
    let tokens: Vec<&str> = lines
        .iter()
        .filter_map(|line| line.strip_prefix("x-aws-ec2-metadata-token: "))
        .collect();
    // A session takes two requests. The front refuses those without the token, which serves for hours.
    ensure!(tokens.len() >= 6, "{requests:?}");
    let token_requests = lines.iter().filter(|line| line.starts_with("PUT ")).count();
    assert_eq!(token_requests, 1, "{requests:?}");
    lab.check_log(&gateway, &tokens)
}
