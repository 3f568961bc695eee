//! etcd of three members as a cluster's store: on loopback, optionally with TLS and passwords, or
//! in a network namespace that each node reaches over a separate wire.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::authority::create_certificates;
use crate::command::run;
use crate::namespace::{Namespace, Veth};
use crate::process::Process;
use crate::rig::Rig;
use crate::wait::wait_for_value;

const MEMBERS: usize = 3;
const PATIENCE: Duration = Duration::from_secs(120);

/// Members of the cluster; dropping it ends them.
#[derive(Debug)]
pub struct Etcd {
    members: Vec<Option<Process>>,
    ports: Vec<u16>,
    /// Ports of their metrics over plain HTTP.
    metrics: Vec<u16>,
    /// Address under which this process reaches them.
    address: String,
    /// Folder of certificates, if it uses TLS.
    folder: Option<PathBuf>,
}

/// Users of an etcd with passwords: `suimon` may access all keys of the cluster, and `other` none.
const USERS: [(&str, &str); 3] =
    [("root", "of-root"), ("suimon", "of-suimon"), ("other", "of-other")];

/// Namespace for etcd, in which each node uses a separate address to reach it.
#[derive(Debug)]
pub struct EtcdNetwork {
    wires: Vec<Veth>,
    namespace: Namespace,
}

/// Returns an address of a wire. The last wire is used to manage etcd, and never cut.
fn end(wire: usize, host: u8) -> String {
    format!("10.76.{wire}.{host}")
}

impl EtcdNetwork {
    /// Creates a network for `nodes` nodes.
    ///
    /// # Errors
    /// The host rejects namespaces or devices.
    pub fn new(rig: &Rig, nodes: usize) -> Result<Self> {
        let namespace = Namespace::new(rig, "etcd")?;
        let wires = (0..=nodes).map(|wire| {
            let (near, far) = (rig.device(&format!("e{wire}")), format!("n{wire}"));
            let veth = Veth::new(&near, &far, &namespace)?;
            run(&["ip", "address", "add", &format!("{}/24", end(wire, 1)), "dev", &near])?;
            namespace.address(&far, &format!("{}/24", end(wire, 2)))?;
            Ok(veth)
        });
        let wires = wires.collect::<Result<_>>()?;
        Ok(Self { wires, namespace })
    }

    /// Drops etcd's replies to a node silently until [`restore_replies`](Self::restore_replies).
    ///
    /// # Errors
    /// The host rejects the change.
    pub fn cut(&self, node: usize) -> Result<()> {
        self.namespace.run(&["ip", "route", "add", "blackhole", &end(node, 1)]).map(|_| ())
    }

    /// Reconnects a node that was cut off.
    ///
    /// # Errors
    /// The node was not cut off.
    pub fn restore_replies(&self, node: usize) -> Result<()> {
        self.namespace.run(&["ip", "route", "del", "blackhole", &end(node, 1)]).map(|_| ())
    }
}

impl Etcd {
    /// Starts the members and waits for a leader.
    ///
    /// # Errors
    /// etcd is not installed, or its members do not connect to each other.
    pub fn start(rig: &Rig) -> Result<Self> {
        Self::start_at(rig, "127.0.0.1", None, None)
    }

    /// Starts the members with TLS and passwords. The files are those of [`create_certificates`];
    /// in addition, `suimon.password` and `other.password` contain the passwords of a user that may
    /// access the keys below `prefix` and of one that may not.
    ///
    /// # Errors
    /// etcd or curl is not installed, or its members do not connect to each other.
    pub fn start_secured(rig: &Rig, prefix: &str) -> Result<Self> {
        let folder = create_certificates(rig.path("etcd-tls").as_ref());
        let etcd = Self::start_at(rig, "127.0.0.1", None, Some(folder.clone()))?;
        for (user, password) in USERS {
            let file = folder.join(format!("{user}.password"));
            std::fs::write(&file, format!("{password}\n"))?;
            run(&["chmod", "600", &file.to_string_lossy()])?;
            etcd.post_auth("user/add", &json!({"name": user, "password": password}))?;
        }
        let end = format!("{}0", prefix.trim_end_matches('/'));
        let permissions =
            json!({"permType": "READWRITE", "key": base64(prefix), "range_end": base64(&end)});
        for (role, perm) in [("root", None), ("suimon", Some(permissions))] {
            etcd.post_auth("role/add", &json!({"name": role}))?;
            if let Some(perm) = perm {
                etcd.post_auth("role/grant", &json!({"name": role, "perm": perm}))?;
            }
            etcd.post_auth("user/grant", &json!({"user": role, "role": role}))?;
        }
        etcd.post_auth("enable", &json!({}))?;
        Ok(etcd)
    }

    /// Sends a request about users to the first member, before passwords are enabled.
    fn post_auth(&self, operation: &str, body: &Value) -> Result<()> {
        let folder = self.folder.as_ref().context("it has no TLS")?;
        let authority = folder.join("ca-cert.pem").to_string_lossy().into_owned();
        let port = self.ports.first().context("it has no member")?;
        let url = format!("https://127.0.0.1:{port}/v3/auth/{operation}");
        let response =
            run(&["curl", "-sS", "--cacert", &authority, "-d", &body.to_string(), &url])?;
        let response: Value = serde_json::from_str(&response).context("etcd's answer")?;
        if response.get("error").is_some() {
            bail!("{operation}: {response}");
        }
        Ok(())
    }

    /// Returns the folder with certificates and passwords.
    ///
    /// # Panics
    /// The cluster does not use TLS.
    #[must_use]
    pub fn folder(&self) -> &std::path::Path {
        self.folder.as_ref().expect("an etcd with TLS")
    }

    /// Starts the members in a network.
    ///
    /// # Errors
    /// etcd is not installed, or its members do not connect to each other.
    pub fn start_in(rig: &Rig, network: &EtcdNetwork) -> Result<Self> {
        let index = network.wires.len() - 1;
        Self::start_at(rig, &end(index, 2), Some(&network.namespace), None)
    }

    fn start_at(
        rig: &Rig,
        address: &str,
        namespace: Option<&Namespace>,
        folder: Option<PathBuf>,
    ) -> Result<Self> {
        let ports =
            |_| TcpListener::bind("127.0.0.1:0")?.local_addr().map(|address| address.port());
        let clients = (0..MEMBERS).map(ports).collect::<std::io::Result<Vec<u16>>>()?;
        let peers = (0..MEMBERS).map(ports).collect::<std::io::Result<Vec<u16>>>()?;
        let metrics = (0..MEMBERS).map(ports).collect::<std::io::Result<Vec<u16>>>()?;
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let everywhere = |port: u16| match namespace {
            Some(_) => format!("http://0.0.0.0:{port}"),
            None => url(port),
        };
        let of_clients = |url: String| match folder {
            Some(_) => url.replace("http:", "https:"),
            None => url,
        };
        let cluster: Vec<String> = peers
            .iter()
            .enumerate()
            .map(|(index, port)| format!("m{index}={}", url(*port)))
            .collect();
        let mut members = Vec::new();
        for (index, ((client, peer), metrics)) in
            clients.iter().zip(&peers).zip(&metrics).enumerate()
        {
            let mut arguments = vec![
                "etcd".to_owned(),
                format!("--name=m{index}"),
                format!("--data-dir={}", rig.path(&format!("etcd{index}"))),
                format!("--listen-client-urls={}", of_clients(everywhere(*client))),
                format!("--advertise-client-urls={}", of_clients(url(*client))),
                format!("--listen-metrics-urls={}", everywhere(*metrics)),
                format!("--listen-peer-urls={}", url(*peer)),
                format!("--initial-advertise-peer-urls={}", url(*peer)),
                format!("--initial-cluster={}", cluster.join(",")),
                "--initial-cluster-state=new".to_owned(),
                "--log-level=error".to_owned(),
            ];
            if let Some(folder) = &folder {
                let file_path = |file: &str| folder.join(file).to_string_lossy().into_owned();
                arguments.push(format!("--cert-file={}", file_path("server-cert.pem")));
                arguments.push(format!("--key-file={}", file_path("server-key.pem")));
            }
            let member = match namespace {
                Some(namespace) => {
                    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                    namespace.start(rig, "etcd", &arguments)
                }
                None => Process::start(rig, "etcd", &arguments),
            };
            members.push(Some(member?));
        }
        let address = address.to_owned();
        let etcd = Self { members, ports: clients, metrics, address, folder };
        wait_for_value("a leader of etcd", PATIENCE, || Ok(etcd.leader()))?;
        Ok(etcd)
    }

    /// Returns the URLs of the members in the syntax of a host file.
    #[must_use]
    pub fn endpoints(&self) -> String {
        self.endpoints_at(&self.address)
    }

    /// Returns the URLs for a node of its network.
    #[must_use]
    pub fn endpoints_of(&self, node: usize) -> String {
        self.endpoints_at(&end(node, 2))
    }

    fn endpoints_at(&self, address: &str) -> String {
        let scheme = if self.folder.is_some() { "https" } else { "http" };
        let urls: Vec<_> =
            self.ports.iter().map(|port| format!("\"{scheme}://{address}:{port}\"")).collect();
        format!("[{}]", urls.join(", "))
    }

    /// Returns the index of the leader, if there is one.
    #[must_use]
    pub fn leader(&self) -> Option<usize> {
        let running = self.members.iter().enumerate().filter(|(_, member)| member.is_some());
        let mut leads = running.filter(|(leader, _)| self.leads(*leader).unwrap_or(false));
        leads.next().map(|(index, _)| index)
    }

    fn leads(&self, index: usize) -> Result<bool> {
        let port = self.metrics.get(index).context("there is no such member")?;
        let mut stream = TcpStream::connect((self.address.as_str(), *port))?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text.lines().any(|line| line == "etcd_server_is_leader 1"))
    }

    /// Kills a member.
    ///
    /// # Errors
    /// The member is not running.
    pub fn kill(&mut self, index: usize) -> Result<()> {
        let member = self.members.get_mut(index).and_then(Option::take);
        member.context("it is not running")?.kill();
        Ok(())
    }
}

/// Encodes text as base64, as etcd's JSON requires for keys (RFC 4648, 4).
fn base64(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in text.as_bytes().chunks(3) {
        let bits = three.iter().fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
        let bits = bits << (8 * (3 - three.len()));
        for digit in 0..4 {
            let digit_index = bits >> (6 * (3 - digit)) & 63;
            out.push(if digit <= three.len() { char::from(DIGITS[digit_index]) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_as_in_rfc_4648() {
        let encoded = ["", "f", "fo", "foo", "foob"].map(base64);
        assert_eq!(encoded, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]);
    }
}
