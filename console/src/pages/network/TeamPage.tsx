/** One team: its members, what they carry, and what LACP says on each link. */
import type { ReactNode } from "react";
import { Button } from "@patternfly/react-core";
import { useState } from "react";
import type { TeamStatus } from "../../api/types";
import { useTopic } from "../../live/hooks";
import { rateHistory, useRing } from "../../live/history";
import { Chart } from "../../parts/Chart";
import { DataTable } from "../../parts/DataTable";
import { Facts } from "../../parts/Facts";
import { PageFrame } from "../../parts/PageFrame";
import { Section } from "../../parts/Section";
import { Empty, WhenHeard } from "../../parts/States";
import { StateLabel } from "../../parts/StateLabel";
import { link } from "../../shell/router";
import { useTexts } from "../../texts/texts";
import { age, bitRate, percent, speed } from "../../units/units";
import { inSync, stateLetters } from "./lacp";
import { Health } from "./PortTables";
import { TeamDialog } from "./TeamDialog";

type Member = TeamStatus["members"][number];

export function TeamPage(props: { name: string }) {
  const { t } = useTexts();
  const teams = useTopic("teams");
  const [changing, setChanging] = useState(false);
  const team = teams.data?.find((one) => one.config.name === props.name);
  return (
    <PageFrame
      title={t("team.title", { team: props.name })}
      about={<a href={link("network")}>{t("team.all")}</a>}
      actions={team && <Button variant="primary" onClick={() => setChanging(true)}>{t("action.change")}</Button>}
    >
      <WhenHeard of={[teams]}>
        {() => team ? (
          <>
            <Section title={t("team.traffic")}><Traffic team={team} /></Section>
            <Section title={t("team.members")}><Members team={team} /></Section>
            {team.config.mode === "lacp" && <Section title="LACP"><Lacp team={team} /></Section>}
            <Section title={t("team.is")}><Is team={team} /></Section>
          </>
        ) : <Empty title={t("team.gone", { team: props.name })} />}
      </WhenHeard>
      {changing && team && <TeamDialog team={team} onClose={() => setChanging(false)} />}
    </PageFrame>
  );
}

function Traffic(props: { team: TeamStatus }) {
  const { t } = useTexts();
  const history = useRing(rateHistory);
  const of = (name: string, key: "rxBps" | "txBps") => history.map((rates) => rates.uplinks.find((one) => one.name === name)?.[key]);
  return (
    <Chart
      label={t("team.traffic")}
      timesMs={history.map((rates) => rates.timeMs)}
      format={bitRate}
      series={props.team.members.flatMap((member, at) => [
        { label: t("team.rx.of", { uplink: member.uplink }), values: of(member.uplink, "rxBps"), color: at },
        { label: t("team.tx.of", { uplink: member.uplink }), values: of(member.uplink, "txBps"), color: at, dashed: true },
      ])}
    />
  );
}

function Members(props: { team: TeamStatus }) {
  const { t, word } = useTexts();
  return (
    <DataTable
      label={t("team.members")}
      rows={props.team.members}
      id={(member) => member.uplink}
      columns={[
        { title: t("port.uplink"), cell: (member) => member.uplink },
        { title: t("column.state"), cell: (member) => <StateLabel state={member.state} /> },
        { title: t("team.role"), cell: (member) => [member.primary && word("primary"), member.standby && word("standby")].filter(Boolean).join(", ") || "–" },
        { title: t("team.link"), cell: (member) => word(member.link_up ? "up" : "down") },
        { title: t("team.speed"), cell: (member) => (member.speed_mbps == null ? "–" : speed(member.speed_mbps)), isNumber: true },
        { title: t("port.rx"), cell: (member) => <Rate bps={member.rx_bps} ppm={member.rx_share_ppm} />, isNumber: true },
        { title: t("port.tx"), cell: (member) => <Rate bps={member.tx_bps} ppm={member.tx_share_ppm} />, isNumber: true },
        { title: t("team.flows"), cell: (member) => percent(member.flows_share_ppm), isNumber: true },
        { title: t("team.nics"), cell: (member) => member.nics, isNumber: true },
        { title: t("column.reason"), cell: (member) => member.reason },
      ]}
    />
  );
}

function Rate(props: { bps: number; ppm: number }) {
  return <><span className="nowrap">{bitRate(props.bps)}</span> <span className="faint nowrap">{percent(props.ppm)}</span></>;
}

function Lacp(props: { team: TeamStatus }) {
  const { t } = useTexts();
  const partner = props.team.lacp_partner;
  const rows = props.team.members.filter((member) => member.lacp);
  const lacp = (of: (lacp: NonNullable<Member["lacp"]>) => ReactNode) => (member: Member) => member.lacp ? of(member.lacp) : "–";
  return (
    <>
      <p className="spaced">
        {partner
          ? t("lacp.partner", { system: partner.system, priority: partner.system_priority, key: partner.key })
          : t("lacp.alone")}
      </p>
      <DataTable
        label="LACP"
        rows={rows}
        id={(member) => member.uplink}
        columns={[
          { title: t("port.uplink"), cell: (member) => member.uplink },
          { title: t("lacp.other"), cell: lacp(({ partner: one }) => <code>{one.system}</code>) },
          { title: t("lacp.port"), cell: lacp(({ partner: one }) => t("lacp.port.value", { port: one.port, key: one.key })) },
          { title: t("lacp.our"), cell: lacp(({ actor }) => <Bits state={actor.state} />) },
          { title: t("lacp.its"), cell: lacp(({ partner: one }) => <Bits state={one.state} />) },
          { title: t("lacp.sync"), cell: lacp(({ actor, partner: one }) => {
            const sync = inSync(actor.state, one.state);
            return <StateLabel state={sync === "both" ? "up" : "down"} text={t(`lacp.sync.${sync}`)} />;
          }) },
          { title: t("lacp.machines"), cell: lacp((one) => `${one.receive}, ${one.mux}`) },
          { title: t("lacp.heard"), cell: lacp((one) => one.last_pdu_age_ms == null ? t("lacp.never") : t("lacp.ago", { age: age(one.last_pdu_age_ms / 1000) })) },
        ]}
      />
      <p className="faint spaced">{t("lacp.letters")}</p>
    </>
  );
}

function Bits(props: { state: readonly string[] }) {
  return <code className="nowrap" title={props.state.join(", ")}>{stateLetters(props.state)}</code>;
}

function Is(props: { team: TeamStatus }) {
  const { t } = useTexts();
  const { team } = props;
  return (
    <Facts
      columns={3}
      of={[
        [t("column.state"), <Health key="h" of={team.condition} />],
        [t("team.mode"), team.config.mode],
        [t("team.algorithm"), team.config.algorithm ?? "dynamic"],
        [t("port.switch"), team.switch ?? "–"],
        [t("team.speed"), speed(team.speed_mbps)],
        ["MTU", team.mtu],
        [t("team.min_links"), team.config.min_links ?? 1],
        [t("word.primary"), team.config.primary ?? "–"],
        [t("word.standby"), team.config.standby ?? "–"],
      ]}
    />
  );
}
