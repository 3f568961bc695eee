//! Keys of SR-IOV adapters and of their virtual functions.

use crate::key::{Key, optional, optional_with_default, required};
use crate::pf_config::VF_RATE_STEP_BPS;
use crate::{ChangeEffect, Form, ResourceKind};

/// Number of VFs. NumVFs is a 16-bit field (PCI Express Base Specification 5.0, section 9.3.3.6).
const VFS: Form = Form::Number { min: 0, max: 65_535 };
const INDEX: Form = Form::Number { min: 0, max: 65_534 };
const RATE: Form = Form::Number { min: VF_RATE_STEP_BPS, max: 1_000_000_000_000_000 };

pub(crate) const PF: &[Key] = &[
    required("name", Form::Name, ChangeEffect::Identity),
    required("device", Form::Adapter, ChangeEffect::Live),
    optional_with_default("vfs", VFS, ChangeEffect::Live),
    optional_with_default("vf", Form::Tables(ResourceKind::Vf), ChangeEffect::Live),
];

pub(crate) const VF: &[Key] = &[
    required("index", INDEX, ChangeEffect::Live),
    optional("mac", Form::UnicastMac, ChangeEffect::Live),
    optional("vlan", Form::Vlan, ChangeEffect::Live),
    optional("spoof_check", Form::Flag, ChangeEffect::Live),
    optional("trust", Form::Flag, ChangeEffect::Live),
    optional("bandwidth_min_bps", RATE, ChangeEffect::Live),
    optional("bandwidth_max_bps", RATE, ChangeEffect::Live),
    optional("link_state", Form::OneOfKeywords(&["auto", "enable", "disable"]), ChangeEffect::Live),
];
