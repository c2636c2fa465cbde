package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/client"
	"aob.dev/writ/internal/durable"
)

func runCommand(std IO) *cobra.Command {
	var f personFlags
	var out string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "run QUESTION", Short: "Ask a running writ to do a task", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			t := turnView{std: std, asJSON: asJSON}
			t.PlanID, err = c.Run(cmd.Context(), args[0], t.take)
			if err == nil && out != "" && t.Status == "complete" {
				err = saveData(cmd.Context(), c, t.Data, out)
			}
			if err != nil {
				return t.broken(cmd, err)
			}
			return t.end(cmd, c)
		},
	}
	f.add(cmd)
	jsonFlag(cmd, &asJSON)
	cmd.Flags().StringVar(&out, "out", "", "file for the data behind the answer, all of it")
	return cmd
}

// saveData writes the data behind an answer to a file: what it holds, or the
// artifact that it names. The file is whole, or not there.
func saveData(ctx context.Context, c client.Client, data json.RawMessage, to string) error {
	if len(data) == 0 {
		return errors.New("the answer has no data")
	}
	err := durable.Stream(to, func(f io.Writer) error {
		var a bus.ArtifactData
		if json.Unmarshal(data, &a) == nil && a.Artifact != "" {
			return c.Artifact(ctx, a.Artifact, f)
		}
		_, err := f.Write(append(data, '\n'))
		return err
	})
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}
