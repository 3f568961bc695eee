//! Keys of SR-IOV adapters and of their virtual functions.

use crate::key::{Key, defaulted, optional, required};
use crate::pf_config::VF_RATE_STEP_BPS;
use crate::{Effect, Form, Kind};

/// NumVFs is a 16-bit field (PCI Express Base Specification 5.0, section 9.3.3.6).
const VFS: Form = Form::Number { least: 0, most: 65_535 };
const INDEX: Form = Form::Number { least: 0, most: 65_534 };
const RATE: Form = Form::Number { least: VF_RATE_STEP_BPS, most: 1_000_000_000_000_000 };

pub(crate) const PF: &[Key] = &[
    required("name", Form::Name, Effect::Identity),
    required("device", Form::Adapter, Effect::Live),
    defaulted("vfs", VFS, Effect::Live),
    defaulted("vf", Form::Tables(Kind::Vf), Effect::Live),
];

pub(crate) const VF: &[Key] = &[
    required("index", INDEX, Effect::Live),
    optional("mac", Form::UnicastMac, Effect::Live),
    optional("vlan", Form::Vlan, Effect::Live),
    optional("spoof_check", Form::Flag, Effect::Live),
    optional("trust", Form::Flag, Effect::Live),
    optional("bandwidth_min_bps", RATE, Effect::Live),
    optional("bandwidth_max_bps", RATE, Effect::Live),
    optional("link_state", Form::OneOf(&["auto", "enable", "disable"]), Effect::Live),
];
