//! `resourcedetection`: attributes of resources that the host tells.

use std::fmt;

use super::{Processor, ProcessorSettings};
use crate::config::components::{EVERY, Entry, Parse, name};
use crate::config::options::{Kind, Opt, Section, Table, opt};

/// What is found out, and what is done with it.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceDetection {
    /// In this order; of an attribute that several tell the first one counts.
    pub detectors: Vec<Detector>,
    /// Attributes that resources have are replaced.
    pub replace: bool,
    /// The only attributes that are set; none: all.
    pub only: Vec<String>,
    /// Options of `env`.
    pub env: Env,
    /// Options of `system`.
    pub system: System,
}

impl ProcessorSettings for ResourceDetection {}

/// Where attributes come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Detector {
    /// A variable of the environment.
    Env,
    /// The operating system.
    System,
    /// One that the Collector has and that is not built in.
    Absent(String),
}

impl fmt::Display for Detector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Detector::Env => "env",
            Detector::System => "system",
            Detector::Absent(name) => name,
        })
    }
}

/// Which keys of the variable count: patterns with `*` and `?`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Env {
    /// None: all.
    pub included: Vec<String>,
    /// But not these.
    pub excluded: Vec<String>,
}

/// Which attributes the operating system is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct System {
    /// Their names.
    pub attributes: Vec<String>,
    /// Where `host.name` comes from, the first that knows it: `dns` (`/etc/hosts`), `os` (the
    /// kernel).
    pub name_sources: Vec<String>,
}

/// Detectors of clouds and platforms: on a host that is none of theirs the Collector's find nothing
/// and it goes on, and so it does here. On one that is, attributes would be missing: a warning says
/// so.
#[rustfmt::skip]
const ABSENT: &[&str] = &[
    "akamai", "alibaba_ecs", "aks", "azure", "azureappservice", "azurecontainerapps", "azurefunctions", "consul", "digitalocean", "docker", "dynatrace", "ec2",
    "ecs", "eks", "elastic_beanstalk", "elasticbeanstalk", "gcp", "gce", "gke", "heroku", "hetzner", "ibmcloud_classic", "ibmcloud_vpc", "k8s_api", "k8snode", "kubeadm", "lambda",
    "nova", "openshift", "oraclecloud", "scaleway", "tencent_cvm", "upcloud", "vultr",
];
const NOT_BUILT_IN: &str = "this detector is not built in";
const NO_METADATA: &str = "the detectors here ask no server";

#[rustfmt::skip]
const ENABLED: &[Opt] = &[opt("enabled", Kind::Flag, "false", "it is set")];
#[rustfmt::skip]
const ENABLED_AT_FIRST: &[Opt] = &[opt("enabled", Kind::Flag, "true", "it is set")];

const OFF: Kind = Kind::Section(&[ENABLED]);
const ON: Kind = Kind::Section(&[ENABLED_AT_FIRST]);

#[rustfmt::skip]
const SYSTEM_ATTRIBUTES: &[Opt] = &[
    opt("host.name", ON, "", "the host's name, as the kernel has it"),
    opt("os.type", ON, "", "such as `linux`"),
    opt("host.arch", OFF, "", "such as `amd64`"),
    opt("host.id", OFF, "", "`/etc/machine-id`"),
    opt("host.ip", OFF, "", "addresses that are no loopback's"),
    opt("host.mac", OFF, "", "addresses of interfaces"),
    opt("host.interface", OFF, "", "names of interfaces"),
    opt("os.name", OFF, "", "`NAME` of `/etc/os-release`"),
    opt("os.version", OFF, "", "`VERSION_ID` of `/etc/os-release`"),
    opt("os.build.id", OFF, "", "the kernel's version"),
    opt("os.description", OFF, "", "a text of all that"),
    opt("host.cpu.vendor.id", OFF, "", "of the first processor"),
    opt("host.cpu.family", OFF, "", "of the first processor"),
    opt("host.cpu.model.id", OFF, "", "of the first processor"),
    opt("host.cpu.model.name", OFF, "", "of the first processor"),
    opt("host.cpu.stepping", OFF, "", "of the first processor"),
    opt("host.cpu.cache.l2.size", OFF, "", "of the first processor, in KB"),
];
#[rustfmt::skip]
const SYSTEM: &[Opt] = &[
    opt("hostname_sources", Kind::Words(&["os", "dns", "cname", "lookup"]), "dns,os", "where `host.name` comes from: `dns` is the full name in `/etc/hosts`, `os` the kernel; others are passed over with a warning"),
    opt("resource_attributes", Kind::Section(&[SYSTEM_ATTRIBUTES]), "", "which attributes"),
];
#[rustfmt::skip]
const CHOICE: &[Opt] = &[
    opt("included", Kind::Texts, "", "patterns of keys with `*` and `?`; all where it is not written"),
    opt("excluded", Kind::Texts, "", "and of those that are left out"),
];
#[rustfmt::skip]
const ENV: &[Opt] = &[
    opt("attributes", Kind::Section(&[CHOICE]), "", "which attributes"),
];
#[rustfmt::skip]
const RETRY: &[Opt] = &[
    opt("enabled", Kind::Flag, "true", "detection is tried again"),
    opt("initial_interval", Kind::Duration, "", "after this time"),
    opt("max_interval", Kind::Duration, "", "after this time at most"),
    opt("max_elapsed_time", Kind::Duration, "", "until this time"),
    opt("multiplier", Kind::Number(0.0, f64::MAX), "1.5", "how much longer each time"),
    opt("randomization_factor", Kind::Number(0.0, 1.0), "0.5", "how much by chance"),
];

#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("detectors", Kind::Texts, "env", "who finds out, in this order: `env`, `system`; others are left out with a warning"),
    opt("override", Kind::Flag, "true", "attributes that a resource has are replaced"),
    opt("attributes", Kind::Texts, "", "the only ones that are set; all where it is not written").deprecated("write 'system::resource_attributes', or 'env::attributes'"),
    opt("timeout", Kind::Duration, "5s", "of detectors that ask a server").no_effect(NO_METADATA),
    opt("refresh_interval", Kind::Duration, "0s", "all is found out again after this time").refused("what is detected is detected at the start"),
    opt("fail_on_missing_metadata", Kind::Flag, "false", "nothing starts without what servers tell").refused(NO_METADATA),
    opt("retry", Kind::Section(&[RETRY]), "", "detection is tried again").no_effect(NO_METADATA),
    opt("env", Kind::Section(&[ENV]), "", "of the detector `env`: `OTEL_RESOURCE_ATTRIBUTES`"),
    opt("system", Kind::Section(&[SYSTEM]), "", "of the detector `system`"),
];

const fn absent(name: &'static str) -> Opt {
    opt(name, Kind::Any, "", "of the detector").no_effect(NOT_BUILT_IN)
}

#[rustfmt::skip]
const ABSENT_OPTIONS: &[Opt] = &[
    absent("akamai"), absent("alibaba_ecs"), absent("aks"), absent("azure"), absent("azureappservice"), absent("azurecontainerapps"), absent("azurefunctions"),
    absent("consul"), absent("digitalocean"), absent("docker"), absent("ec2"), absent("ecs"), absent("eks"), absent("elasticbeanstalk"), absent("gcp"),
    absent("heroku"), absent("hetzner"), absent("ibmcloud_classic"), absent("ibmcloud_vpc"), absent("k8s_api"), absent("k8snode"), absent("kubeadm"), absent("lambda"),
    absent("nova"), absent("openshift"), absent("oraclecloud"), absent("scaleway"), absent("tencent_cvm"), absent("upcloud"), absent("vultr"),
];
const TABLE: Table = &[OPTIONS, ABSENT_OPTIONS];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("resourcedetection"), name("resource_detection")],
    doc: "sets attributes of resources that the host tells",
    takes: EVERY,
    carries: EVERY,
    options: TABLE,
    parse: Parse::Processor(parse),
};

fn parse(section: &Section<'_>) -> Processor {
    let mut detectors = Vec::new();
    for (text, at) in section.texts_at("detectors") {
        detectors.push(match text.as_str() {
            "env" => Detector::Env,
            "system" => Detector::System,
            name if ABSENT.contains(&name) => {
                let message = format!(
                    "{}::detectors: '{name}' is not built in: on such a host its attributes are missing",
                    section.path
                );
                section.notes.warn(at, message);
                Detector::Absent(text)
            }
            name => {
                let message = format!("{}::detectors: there is no detector '{name}'", section.path);
                section.notes.error(at, message);
                continue;
            }
        });
    }
    let system = section.section("system");
    let mut name_sources = system.texts("hostname_sources");
    let is_local = |source: &String| source == "os" || source == "dns";
    if !name_sources.iter().all(is_local) {
        let message = "'cname' and 'lookup' are not built in: nobody is asked over the network";
        system.warn("hostname_sources", message);
        name_sources.retain(is_local);
    }
    let attributes = system.section("resource_attributes");
    let is_wanted = |opt: &&Opt| attributes.section(opt.name).flag("enabled");
    let wanted = SYSTEM_ATTRIBUTES.iter().filter(is_wanted);
    let choice = section.section("env").section("attributes");
    Processor::new(ResourceDetection {
        detectors,
        replace: section.flag("override"),
        only: section.texts("attributes"),
        env: Env {
            included: choice.texts("included"),
            excluded: choice.texts("excluded"),
        },
        system: System {
            attributes: wanted.map(|opt| opt.name.to_owned()).collect(),
            name_sources,
        },
    })
}
