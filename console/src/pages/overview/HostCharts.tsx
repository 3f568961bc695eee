/** Charts of traffic, disk requests and worker load over the last minutes. */
import { rateHistory, useRingBuffer } from "../../live/history";
import type { Rates } from "../../live/rates";
import { Chart } from "../../components/Chart";
import { Section } from "../../components/Section";
import { useTexts } from "../../texts/texts";
import { bitRate, count, percent } from "../../units/units";

export function HostCharts() {
  const { t } = useTexts();
  const history = useRingBuffer(rateHistory);
  const times = history.map((rates) => rates.timeMs);
  const sum = (values: (rates: Rates) => number[]) => history.map((rates) => values(rates).reduce((total, value) => total + value, 0));
  const ids = [...new Set(history.flatMap((rates) => rates.workers.map((worker) => worker.id)))].sort((a, b) => a - b);
  return (
    <div className="grid">
      <Section title={t("chart.network")}>
        <Chart
          label={t("chart.network")}
          timesMs={times}
          height={170}
          format={bitRate}
          series={[
            { label: t("chart.from"), values: sum((rates) => rates.nics.map((nic) => nic.rxBps)) },
            { label: t("chart.to"), values: sum((rates) => rates.nics.map((nic) => nic.txBps)) },
          ]}
        />
      </Section>
      <Section title={t("chart.disks")}>
        <Chart
          label={t("chart.disks")}
          timesMs={times}
          height={170}
          format={(value) => `${count(value)}/s`}
          series={[
            { label: t("chart.reads"), values: sum((rates) => rates.disks.map((disk) => disk.readsPerS)) },
            { label: t("chart.writes"), values: sum((rates) => rates.disks.map((disk) => disk.writesPerS)) },
          ]}
        />
      </Section>
      <Section title={t("chart.workers")}>
        <Chart
          label={t("chart.workers")}
          timesMs={times}
          height={170}
          max={1_000_000}
          format={percent}
          series={ids.slice(0, 8).map((id) => ({
            label: t("chart.worker", { id }),
            values: history.map((rates) => rates.workers.find((worker) => worker.id === id)?.busyPpm),
          }))}
        />
      </Section>
    </div>
  );
}
