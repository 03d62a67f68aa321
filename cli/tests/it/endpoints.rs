//! Where the endpoint is configured, and which place takes precedence.

use std::fs;

use pushdown_testkit::World;

use super::cli::pushdown;

/// An address at which nothing listens.
const OTHER: &str = "http://127.0.0.1:1";

/// What is set: variables, and lines of the profile `p`. `URL` stands for the endpoint.
struct Setting {
    variables: &'static [(&'static str, &'static str)],
    profile: &'static str,
    services: &'static str,
}

const NOTHING: Setting = Setting {
    variables: &[],
    profile: "",
    services: "",
};

/// Lists the bucket with a setting, and returns stdout and stderr.
fn list(world: &World, setting: &Setting, arguments: &[&str]) -> (String, String) {
    let endpoint = world.endpoint();
    let config = world.folder().join("config");
    let Setting {
        variables,
        profile,
        services,
    } = setting;
    let text = format!("[profile p]\nservices = s\n{profile}\n[services s]\ns3 =\n  {services}\n");
    fs::write(&config, text.replace("URL", &endpoint)).unwrap();
    let mut command = pushdown(&[&["ls", "s3://photos/", "--profile", "p"], arguments].concat());
    command.env("AWS_CONFIG_FILE", &config);
    for (name, value) in *variables {
        command.env(name, value.replace("URL", &endpoint));
    }
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

#[test]
fn the_endpoint_is_found_where_the_aws_tools_find_it() {
    let world = World::with_photos(1).unwrap();
    let other_profile = format!("endpoint_url = {OTHER}");
    let other_profile: &'static str = other_profile.leak();
    for setting in [
        Setting {
            variables: &[("AWS_ENDPOINT_URL_S3", "URL"), ("AWS_ENDPOINT_URL", OTHER)],
            profile: other_profile,
            services: other_profile,
        },
        Setting {
            variables: &[("AWS_ENDPOINT_URL", "URL")],
            profile: other_profile,
            services: other_profile,
        },
        Setting {
            profile: other_profile,
            services: "endpoint_url = URL",
            ..NOTHING
        },
        Setting {
            profile: "endpoint_url = URL",
            ..NOTHING
        },
        // An empty variable is as none.
        Setting {
            variables: &[("AWS_ENDPOINT_URL_S3", ""), ("AWS_ENDPOINT_URL", "URL")],
            ..NOTHING
        },
        Setting {
            variables: &[("AWS_ENDPOINT_URL_S3", ""), ("AWS_ENDPOINT_URL", "")],
            services: "endpoint_url = URL",
            ..NOTHING
        },
        Setting {
            variables: &[
                ("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "false"),
                ("AWS_ENDPOINT_URL_S3", "URL"),
            ],
            ..NOTHING
        },
    ] {
        let Setting {
            variables,
            profile,
            services,
        } = &setting;
        let (listed, error) = list(&world, &setting, &[]);
        let key = world.objects.keys().next().unwrap();
        assert!(
            listed.contains(key),
            "{variables:?} {profile} {services}: {error}"
        );
    }
}

#[test]
fn without_an_endpoint_a_read_that_needs_a_gateway_is_refused() {
    let output = pushdown(&["read", "s3://photos/", "--pipeline", "decode"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "error: https://s3.us-east-1.amazonaws.com is no pushdown gateway: use plain mode, or set the gateway's URL\n"
    );
}

#[test]
fn configured_endpoints_can_be_ignored() {
    let world = World::with_photos(1).unwrap();
    for setting in [
        Setting {
            variables: &[
                ("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true"),
                ("AWS_ENDPOINT_URL_S3", "URL"),
                ("AWS_ENDPOINT_URL", "URL"),
            ],
            profile: "endpoint_url = URL",
            services: "endpoint_url = URL",
        },
        Setting {
            variables: &[("AWS_ENDPOINT_URL_S3", "URL")],
            profile: "ignore_configured_endpoint_urls = true",
            services: "endpoint_url = URL",
        },
    ] {
        // Without a configured endpoint it is that of AWS in the region, which this one does not have.
        let (listed, error) = list(&world, &setting, &["--region", "not a region"]);
        assert!(
            listed.is_empty()
                && error.contains("cannot resolve the endpoint of S3 in the region `not a region`"),
            "{error}"
        );
        let (listed, error) = list(&world, &setting, &["--endpoint-url", &world.endpoint()]);
        assert!(!listed.is_empty(), "{error}");
    }
}
