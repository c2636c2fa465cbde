//go:build integration

package docs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

const chart = root + "/deploy/helm/writ"

// tool runs a program that .ci/integration has brought.
func tool(t *testing.T, variable string, args ...string) (string, error) {
	t.Helper()
	program := os.Getenv(variable)
	if program == "" {
		t.Fatalf("%s names no program: run make integration", variable)
	}
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	return out.String(), errors.Join(err, errors.New(errs.String()))
}

func ran(t *testing.T, variable string, args ...string) string {
	t.Helper()
	out, err := tool(t, variable, args...)
	if errors.As(err, new(*exec.ExitError)) {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return out
}

type object = map[string]any

// lookup walks through mappings, and is nil where there is none.
func lookup(o any, path ...string) any {
	for _, name := range path {
		m, _ := o.(object)
		o = m[name]
	}
	return o
}

func elements(o any) []any { list, _ := o.([]any); return list }

// rendered is the chart with values, after every object was checked against its schema of
// Kubernetes.
func rendered(t *testing.T, args ...string) map[string]object {
	t.Helper()
	text := ran(t, "WRIT_HELM", append([]string{"template", "w", chart, "--kube-version", "1.31.0", "--namespace", "prod"}, args...)...)
	file := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"1.28", "1.31", "1.34"} {
		ran(t, "WRIT_KUBERNETES", "--strict", "-k", version, file)
	}
	all := map[string]object{}
	for dec := yaml.NewDecoder(strings.NewReader(text)); ; {
		var o object
		err := dec.Decode(&o)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if o != nil {
			all[fmt.Sprint(o["kind"], "/", lookup(o, "metadata", "name"))] = o
		}
	}
}

// TestIntegrationChart: the chart is sound, with one process and with one for each role;
// every pod is restricted as PodSecurity means it, and no secret is in the chart.
func TestIntegrationChart(t *testing.T) {
	ran(t, "WRIT_HELM", "lint", "--strict", chart)
	one := rendered(t)
	want := []string{"ConfigMap/w-writ", "NetworkPolicy/w-writ-one", "PodDisruptionBudget/w-writ", "Service/w-writ", "ServiceAccount/w-writ", "StatefulSet/w-writ"}
	if d := cmp.Diff(want, slices.Sorted(maps.Keys(one))); d != "" {
		t.Errorf("one process (-want +got):\n%s", d)
	}
	if n := lookup(one["StatefulSet/w-writ"], "spec", "replicas"); n != 1 {
		t.Errorf("%v processes share a data directory", n)
	}
	roles := rendered(t, "--values", "testdata/chart_roles.yaml")
	pods := 0
	for _, all := range []map[string]object{one, roles} {
		for name, o := range all {
			if strings.HasPrefix(name, "Secret/") {
				t.Errorf("the chart has %s", name)
			}
			if spec := lookup(o, "spec", "template", "spec"); spec != nil {
				pods++
				restricted(t, name, spec)
			}
		}
	}
	if pods != 8 {
		t.Errorf("%d pods", pods)
	}
	got := map[string]string{}
	for name, o := range roles {
		if component, ok := strings.CutPrefix(name, "StatefulSet/w-writ-"); ok {
			got[component] = fmt.Sprint(lookup(elements(lookup(o, "spec", "template", "spec", "containers"))[0], "args"))
			if roles["Service/w-writ-"+component] == nil {
				t.Errorf("the processes of %s have no names", component)
			}
			if roles["PodDisruptionBudget/w-writ-"+component] == nil {
				t.Errorf("%s has no disruption budget", component)
			}
		}
	}
	if d := cmp.Diff(map[string]string{
		"gateway": "[admin cell serve gateway --config /etc/writ/writ.yaml]", "router": "[admin cell serve router --config /etc/writ/writ.yaml]", "recorder": "[admin cell serve recorder --config /etc/writ/writ.yaml]",
		"thinking": "[admin cell serve manager planner task workflow --config /etc/writ/writ.yaml]", "monitor": "[admin cell serve monitor --config /etc/writ/writ.yaml]",
		"python": "[admin cell serve executor:python --config /etc/writ/writ.yaml]", "skills": "[admin cell serve executor:skills --config /etc/writ/writ.yaml]",
	}, got); d != "" {
		t.Errorf("roles (-want +got):\n%s", d)
	}
}

// restricted is what PodSecurity's level of that name asks for, and a file system that
// nobody writes to.
func restricted(t *testing.T, name string, spec any) {
	t.Helper()
	pod := lookup(spec, "securityContext")
	c := elements(lookup(spec, "containers"))[0]
	box := lookup(c, "securityContext")
	for what, ok := range map[string]bool{
		"runAsNonRoot":             lookup(pod, "runAsNonRoot") == true,
		"runAsUser":                lookup(pod, "runAsUser") == 65532,
		"seccompProfile":           lookup(pod, "seccompProfile", "type") == "RuntimeDefault",
		"allowPrivilegeEscalation": lookup(box, "allowPrivilegeEscalation") == false,
		"readOnlyRootFilesystem":   lookup(box, "readOnlyRootFilesystem") == true,
		"capabilities":             cmp.Equal(lookup(box, "capabilities"), object{"drop": []any{"ALL"}}),
		"hostNetwork":              lookup(spec, "hostNetwork") == nil && lookup(spec, "hostPID") == nil && lookup(spec, "hostIPC") == nil,
		"token":                    lookup(spec, "automountServiceAccountToken") == false,
		"one container":            len(elements(lookup(spec, "containers"))) == 1,
		"memory":                   lookup(c, "resources", "limits", "memory") != nil,
	} {
		if !ok {
			t.Errorf("%s: %s is not as it must be", name, what)
		}
	}
	for _, v := range elements(lookup(spec, "volumes")) {
		for kind := range v.(object) {
			if !slices.Contains([]string{"name", "emptyDir", "configMap", "secret", "persistentVolumeClaim"}, kind) {
				t.Errorf("%s: a volume is a %s", name, kind)
			}
		}
	}
	for _, e := range elements(lookup(c, "env")) {
		if variable := fmt.Sprint(lookup(e, "name")); !knownVariable(variable) {
			t.Errorf("%s: writ reads no %s", name, variable)
		}
	}
}

// TestIntegrationChartArrows: of each process, who reaches it and what it reaches.
func TestIntegrationChartArrows(t *testing.T) {
	all := rendered(t, "--values", "testdata/chart_roles.yaml")
	got := map[string]string{}
	for name, o := range all {
		component, ok := strings.CutPrefix(name, "NetworkPolicy/w-writ-")
		if !ok {
			continue
		}
		if d := cmp.Diff([]any{"Ingress", "Egress"}, lookup(o, "spec", "policyTypes")); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		var arrows []string
		for way, peers := range map[string]string{"ingress": "from", "egress": "to"} {
			for _, rule := range elements(lookup(o, "spec", way)) {
				if len(elements(lookup(rule, peers))) == 0 {
					t.Errorf("%s: a rule of %s is for everybody", name, way)
				}
				arrows = append(arrows, fmt.Sprint(way[:1], lookup(elements(lookup(rule, "ports"))[0], "port")))
			}
		}
		slices.Sort(arrows)
		got[component] = strings.Join(arrows, " ")
	}
	want := map[string]string{
		"gateway": "e4222 e53 e8080 e9000 i8080 i9090", "router": "e4222 e53 e8080 e9000 e9200 i8080 i9090", "recorder": "e4222 e53 e9000 e9200 i8080 i9090", "thinking": "e4222 e443 e53 i9090",
		"monitor": "e53 e8080 e9200 i9090", "python": "e4222 e53 e9000 e9200 i9090", "skills": "e4222 e53 e8443 e9000 e9200 i9090",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestIntegrationChartRefuses: values that are none are refused by name.
func TestIntegrationChartRefuses(t *testing.T) {
	for value, says := range map[string]string{
		"config.model_key=x":                                 "model_key",
		"environment=staging":                                "environment",
		"image.digest=latest":                                "digest",
		"roles.a.replicas=2":                                 "serve",
		"roles.a.serve[0]=root":                              "serve",
		"roles.gateway.serve[0]=gateway,unknown=1":           "unknown",
		"networkPolicy.models[0].ports[0]=443":               "to",
		"secrets[0].variable=K,secrets[0].value=in-the-open": "value",
	} {
		_, err := tool(t, "WRIT_HELM", "template", "w", chart, "--kube-version", "1.31.0", "--set", value)
		if !errors.As(err, new(*exec.ExitError)) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// TestIntegrationCompose: the file is one of the Compose specification.
func TestIntegrationCompose(t *testing.T) {
	for file, services := range map[string]int{"compose.yaml": 7, "opensearch.yml": 1} {
		var model struct{ Services map[string]any }
		out := ran(t, "WRIT_COMPOSE", root+"/deploy/compose/"+file)
		if err := yaml.Unmarshal([]byte(out), &model); err != nil || len(model.Services) != services {
			t.Errorf("%s: %v\n%s", file, err, out)
		}
	}
	bad := filepath.Join(t.TempDir(), "compose.yaml")
	if err := os.WriteFile(bad, []byte("services:\n  writ:\n    image: writ\n    read_only: perhaps\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := tool(t, "WRIT_COMPOSE", bad); !errors.As(err, new(*exec.ExitError)) {
		t.Errorf("a file that is none: %v", err)
	}
}
