package catalog

func init() {
	examples["logs.stream"] = example{
		[]any{LogsStream{RunID: "plan_1", Filter: LogsErrors, NodeID: "build"}, LogsStream{RunID: "plan_1"}},
		[]any{LogsStreamResult{StreamURL: "wss://writ.example/v1/logs/i.x", ExpiresSec: 90}},
	}
}
