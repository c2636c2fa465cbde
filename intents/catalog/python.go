package catalog

import (
	"encoding/json"
	"time"

	"aob.dev/writ/intents"
)

var pythonRows = []Row{
	{Type: "exec_python", Title: "Run a Python script in the sandbox", Capability: "python:run", Signers: []intents.Role{intents.RoleTask}, Executor: "python", Effect: Pure, MaxRun: 35 * time.Second, MaxQueue: time.Minute, DataAt: "/input"},
}

// ExecPython are the arguments of exec_python. The script finds its
// input, if any (one of Input, From and Inputs), at the path in the variable input_file
// and prints one JSON document.
type ExecPython struct {
	Script     string            `json:"script"` // at most 32 KiB
	Input      json.RawMessage   `json:"input,omitempty"`
	From       string            `json:"from,omitempty"`
	Inputs     map[string]string `json:"inputs,omitempty"`      // the file is an object with these members, each as From
	TimeoutSec int               `json:"timeout_sec,omitempty"` // 1..30, default 30
}

// ExecPythonResult is the result of exec_python: the printed document, or a
// reference when it is large.
type ExecPythonResult struct {
	Output json.RawMessage `json:"output,omitempty"`
	*Reference
}
