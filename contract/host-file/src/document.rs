//! Host file as a tree of values, independent of its notation.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::disk_checks::{check_disk, check_store};
use crate::finding::{ERRORS_MAX, Finding, FindingLocation};
use crate::node_checks::check_node;
use crate::pf_checks::check_pf;
use crate::qos_checks::check_qos_policy;
use crate::renamed_input::replace_old_names_in_table;
use crate::team_checks::check_team;
use crate::uplink_checks::check_uplink;
use crate::validate::{check_nic, check_relations, check_switch};
use crate::vm_checks::check_vm;
use crate::{ApiError, Form, HostConfig, OldNameUse, ResourceKind, table_check};

/// Error, and the path of the table that contains it, such as `nic[2]`.
pub(crate) struct LocatedError {
    pub(crate) path: String,
    pub(crate) error: ApiError,
}

/// Deserializes and validates the tree.
///
/// # Errors
/// Every fault within tables and, if all tables could be deserialized, between tables. At least
/// one, at most 256.
pub(crate) fn read_document(mut root: Map<String, Value>) -> Result<HostConfig, Vec<LocatedError>> {
    let names = Names::of(&root);
    let mut reader =
        Reader { findings: table_check::check_table(FindingLocation::FILE, &root), unread: false };
    let config = HostConfig {
        host: reader.section(ResourceKind::Host, root.remove("host")).unwrap_or_default(),
        api: reader.section(ResourceKind::Api, root.remove("api")),
        console: reader.section(ResourceKind::Console, root.remove("console")),
        lab: reader.section(ResourceKind::Lab, root.remove("lab")),
        power: reader.section(ResourceKind::Power, root.remove("power")),
        cluster: reader.section(ResourceKind::Cluster, root.remove("cluster")),
        switches: reader.tables(ResourceKind::Switch, root.remove("switch"), check_switch),
        uplinks: reader.tables(ResourceKind::Uplink, root.remove("uplink"), check_uplink),
        teams: reader.tables(ResourceKind::Team, root.remove("team"), check_team),
        nics: reader.tables(ResourceKind::Nic, root.remove("nic"), check_nic),
        stores: reader.tables(ResourceKind::Store, root.remove("store"), check_store),
        qos_policies: reader.tables(
            ResourceKind::QosPolicy,
            root.remove("qos_policy"),
            check_qos_policy,
        ),
        disks: reader.tables(ResourceKind::Disk, root.remove("disk"), check_disk),
        vms: reader.tables(ResourceKind::Vm, root.remove("vm"), check_vm),
        pfs: reader.tables(ResourceKind::Pf, root.remove("pf"), check_pf),
        nodes: reader.tables(ResourceKind::Node, root.remove("node"), check_node),
    };
    let Reader { mut findings, unread } = reader;
    // References to an invalid table, which was not deserialized, would be reported as faults.
    if !unread {
        findings.extend(check_relations(&config));
    }
    if findings.is_empty() {
        return Ok(config);
    }
    findings.truncate(ERRORS_MAX);
    Err(findings
        .into_iter()
        .map(|finding| LocatedError {
            path: finding.location.path(),
            error: {
                let name = names.name(finding.location);
                finding.into_error(name.as_deref())
            },
        })
        .collect())
}

/// Returns the old names of renamed keys in the tree, and replaces them by the new ones.
pub(crate) fn replace_old_names_in_document(root: &mut Map<String, Value>) -> Vec<OldNameUse> {
    let mut old_names = Vec::new();
    for key in ResourceKind::File.keys() {
        match (key.form, root.get_mut(key.name)) {
            (Form::Table(kind), Some(Value::Object(table))) => {
                replace_old_names_in_table(FindingLocation::new(kind, 0), table, &mut old_names);
            }
            (Form::Tables(kind), Some(Value::Array(tables))) => {
                for (index, table) in tables.iter_mut().enumerate() {
                    if let Value::Object(table) = table {
                        replace_old_names_in_table(
                            FindingLocation::new(kind, index),
                            table,
                            &mut old_names,
                        );
                    }
                }
            }
            _ => {}
        }
    }
    old_names
}

/// Deserializer of tables. It processes each table separately, so that a fault in one does not hide
/// faults in others.
struct Reader {
    findings: Vec<Finding>,
    unread: bool,
}

impl Reader {
    fn section<T: DeserializeOwned>(
        &mut self,
        kind: ResourceKind,
        value: Option<Value>,
    ) -> Option<T> {
        self.table(FindingLocation::new(kind, 0), value?)
    }

    fn tables<T: DeserializeOwned>(
        &mut self,
        kind: ResourceKind,
        value: Option<Value>,
        check: impl Fn(FindingLocation, &T, &mut Vec<Finding>),
    ) -> Vec<T> {
        let Some(Value::Array(tables)) = value else { return Vec::new() };
        let mut read = Vec::new();
        for (index, table) in tables.into_iter().enumerate() {
            let location = FindingLocation::new(kind, index);
            if let Some(resource) = self.table(location, table) {
                check(location, &resource, &mut self.findings);
                read.push(resource);
            }
        }
        read
    }

    /// Deserializes one table. Returns `None` for an invalid table, and for a value that is not a
    /// table, which [`table_check::check`] reports.
    fn table<T: DeserializeOwned>(&mut self, location: FindingLocation, value: Value) -> Option<T> {
        if self.findings.len() >= ERRORS_MAX {
            self.unread = true;
            return None;
        }
        let Value::Object(table) = value else {
            self.unread |= !value.is_null();
            return None;
        };
        match table_check::read_table(location, table) {
            Ok(resource) => Some(resource),
            Err(findings) => {
                self.findings.extend(findings);
                self.unread = true;
                None
            }
        }
    }
}

/// Names of resources by the location of their table, as far as the tables' `name` keys are valid.
struct Names(BTreeMap<FindingLocation, String>);

impl Names {
    fn of(root: &Map<String, Value>) -> Self {
        let mut names = BTreeMap::new();
        for kind in ResourceKind::RESOURCES {
            let tables = root.get(kind.noun()).and_then(Value::as_array);
            for (index, table) in tables.into_iter().flatten().enumerate() {
                let name = table.get("name").filter(|name| Form::Name.accepts(name));
                if let Some(name) = name.and_then(Value::as_str) {
                    names.insert(FindingLocation::new(kind, index), name.to_owned());
                }
            }
        }
        Self(names)
    }

    fn name(&self, location: FindingLocation) -> Option<String> {
        self.0.get(&location).cloned()
    }
}
