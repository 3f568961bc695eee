//! Queries of other nodes.

use std::time::Instant;

use suimon_contract::{ApiError, Condition, Health, NodeConfig, NodeStatus, ResourceKind};

use super::{Answer, QUERY_TIMEOUT, down};
use crate::errors::not_found;
use crate::shared::Shared;

impl Shared {
    /// Returns the status of all other nodes in the order of the configuration. Blocks up to
    /// [`QUERY_TIMEOUT`].
    pub(crate) fn nodes(&self) -> Vec<NodeStatus> {
        self.query_nodes(&self.desired().config.nodes)
    }

    /// Returns the status of one node. Blocks up to [`QUERY_TIMEOUT`].
    ///
    /// # Errors
    /// The configuration contains no node of this name.
    pub(crate) fn node(&self, name: &str) -> Result<NodeStatus, ApiError> {
        let desired = self.desired();
        let config = desired.config.nodes.iter().find(|node| node.name.as_str() == name);
        let config = config.ok_or_else(|| not_found(ResourceKind::Node, name))?;
        let mut statuses = self.query_nodes(std::slice::from_ref(config));
        statuses.pop().ok_or_else(|| not_found(ResourceKind::Node, name))
    }

    fn query_nodes(&self, configs: &[NodeConfig]) -> Vec<NodeStatus> {
        let deadline = Instant::now() + QUERY_TIMEOUT;
        let questions = &self.node_queries;
        let statuses: Vec<_> = configs
            .iter()
            .map(|config| (config, questions.start(&self.peer_nodes, config, deadline)))
            .collect();
        statuses
            .into_iter()
            .map(|(config, question)| {
                let answer = question.map_or_else(
                    || {
                        Err(down(
                            "too many other nodes do not respond, so this one was not queried; \
                             repeat the command"
                                .to_owned(),
                        ))
                    },
                    |question| questions.wait(&question, deadline),
                );
                status(config, answer)
            })
            .collect()
    }
}

fn status(config: &NodeConfig, answer: Answer) -> NodeStatus {
    let config = config.clone();
    match answer {
        Ok(host) => NodeStatus {
            config,
            condition: Condition { health: Health::Up, reason: None },
            host_name: Some(host.name),
            version: Some(host.version),
            drain: host.drain,
        },
        Err(condition) => {
            NodeStatus { config, condition, host_name: None, version: None, drain: None }
        }
    }
}
