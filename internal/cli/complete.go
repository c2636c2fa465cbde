package cli

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/client"
)

// completionTime bounds what a completion may take: who types waits for it.
const completionTime = 2 * time.Second

// completing completes the first argument with what find knows; where that is
// nothing, or cannot be had in time, there is nothing to choose from.
func completing(std IO, find func(ctx context.Context, cmd *cobra.Command, t target) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if cmd.Context() == nil {
			cmd.SetContext(context.Background())
		}
		t, err := aim(cmd, std)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		return find(ctx, cmd, t), cobra.ShellCompDirectiveNoFileComp
	}
}

// planIDs completes plans, with their tasks.
func planIDs(std IO) cobra.CompletionFunc {
	return completing(std, func(ctx context.Context, _ *cobra.Command, t target) []string {
		var page catalog.PlanListResult
		if (client.Client{URL: t.URL.Value, Key: t.Key.Value}).Get(ctx, "/agent/plans", &page) != nil {
			return nil
		}
		var out []string
		for _, p := range page.Plans {
			out = append(out, p.PlanID+"\t"+oneLine(p.Task, 60))
		}
		return out
	})
}

// heldOrders completes orders that wait for people.
func heldOrders(std IO) cobra.CompletionFunc {
	return completing(std, func(ctx context.Context, _ *cobra.Command, t target) []string {
		var page bus.ApprovalsReply
		if (client.Client{URL: t.URL.Value, Key: t.Key.Value}).Get(ctx, "/agent/approvals", &page) != nil {
			return nil
		}
		var out []string
		for _, h := range page.Approvals {
			out = append(out, h.IntentID+"\t"+h.Type+" of "+printable(h.UserID))
		}
		return out
	})
}

// intentTypes completes types of the catalog, vendors' too where writ runs.
func intentTypes(std IO) cobra.CompletionFunc {
	return completing(std, func(ctx context.Context, _ *cobra.Command, t target) []string {
		rows, err := (&catalogFlags{url: t.URL.Value}).rows(ctx)
		if err != nil {
			if rows, err = (&catalogFlags{}).rows(ctx); err != nil {
				return nil
			}
		}
		var out []string
		for typ, row := range rows {
			out = append(out, typ+"\t"+printable(row.Title))
		}
		slices.Sort(out)
		return out
	})
}
