//! Validation of changed `[[pf]]` sections against the host's adapters, before any is modified.

use std::collections::BTreeMap;

use suimon_contract::{ApiError, ErrorCode, HostConfig, PfConfig};
use suimon_ports::{PfProperties, SriovSupport};
use suimon_quantity::{CountedNoun, PciAddress};

use super::find;
use super::status::support;
use super::users::vf_user_texts;
use crate::errors::error_code;
use crate::shared::Shared;

impl Shared {
    /// Returns the errors of the `[[pf]]` sections that the change adds or modifies.
    pub(crate) fn check_pfs(&self, from: &HostConfig, to: &HostConfig) -> Vec<ApiError> {
        let is_changed = |pf: &&PfConfig| !from.pfs.contains(pf);
        if !to.pfs.iter().any(|pf| is_changed(&pf)) {
            return Vec::new();
        }
        let adapters = match self.sriov.host.adapters() {
            Ok(adapters) => adapters,
            Err(error) => return vec![ApiError::new(ErrorCode::HostError, error.detail)],
        };
        let mut errors = Vec::new();
        let mut described: BTreeMap<PciAddress, &PfConfig> = BTreeMap::new();
        for pf in &to.pfs {
            let found_pf = find(adapters.clone(), pf);
            let other = found_pf
                .as_ref()
                .ok()
                .and_then(|properties| described.insert(properties.address, pf));
            if !is_changed(&pf) && other.is_none_or(|other| !is_changed(&other)) {
                continue;
            }
            let error = match (found_pf, other) {
                (Err(error), _) => Some((error_code(error.kind), error.field, error.detail)),
                (Ok(_), Some(other)) => Some((
                    ErrorCode::Conflict,
                    "device",
                    format!("pf/{} already describes this adapter; keep one of them", other.name),
                )),
                (Ok(properties), None) => check_pf(to, pf, &properties),
            };
            errors.extend(error.map(|(code, field, text)| {
                ApiError::new(code, text).with_resource(format!("pf/{}", pf.name)).with_field(field)
            }));
        }
        errors
    }
}

fn check_pf(
    to: &HostConfig,
    pf: &PfConfig,
    properties: &PfProperties,
) -> Option<(ErrorCode, &'static str, String)> {
    let enabled = properties.vfs.len();
    if pf.vf_count > properties.vfs_max {
        let max_vfs = CountedNoun::new(properties.vfs_max, "VF");
        let text = format!("the adapter supports at most {max_vfs}; set fewer");
        return Some((ErrorCode::InvalidValue, "vfs", text));
    }
    let cannot =
        matches!(properties.support, SriovSupport::MissingPfDriver | SriovSupport::NoVfBarSpace);
    if pf.vf_count > 0 && cannot {
        let support = support(properties.support);
        let remedy = support.remedy().unwrap_or_default();
        let text = format!("the adapter cannot create VFs now ({support}): {remedy}");
        return Some((ErrorCode::Unsupported, "vfs", text));
    }
    if usize::from(pf.vf_count) != enabled {
        let users = vf_user_texts(to, properties);
        if !users.is_empty() {
            let enabled = CountedNoun::new(enabled, "VF");
            let text = format!(
                "the adapter has {enabled}, and a change of their number removes all of them; \
                 release these first: {}",
                users.join("; ")
            );
            return Some((ErrorCode::InUse, "vfs", text));
        }
    }
    if !pf.vf_settings.is_empty() && properties.device.is_none() {
        let text = "the driver of the adapter has no network device, which is needed to configure \
                    VFs; bind the adapter to its vendor's driver, or remove the settings of VFs";
        return Some((ErrorCode::Unsupported, "vf", text.to_owned()));
    }
    None
}
