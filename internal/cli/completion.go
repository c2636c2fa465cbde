package cli

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"aob.dev/writ/executors/skills/approval"
	"aob.dev/writ/intents/catalog"
)

// Bounds of shell completion.
const (
	completionTime = time.Second
	completionMost = 50
)

// completion yields words that a shell may complete, each with a description. Failed look-ups yield
// nothing: a shell has no place for messages.
type completion func(yield func(word, about string) bool)

// completes asks for words: of a running writ, or of its data directory.
func (c *command) completes(words func(begun string) completion) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, begun string) (list []cobra.Completion, then cobra.ShellCompDirective) {
		then = cobra.ShellCompDirectiveNoFileComp
		if _, err := aim(cmd, c.std); err != nil {
			return nil, then
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		cmd.SetContext(ctx)
		words(begun)(func(word, about string) bool {
			if strings.HasPrefix(word, begun) {
				list = append(list, cobra.CompletionWithDesc(printable(word), oneLine(about, 60)))
			}
			return len(list) < completionMost
		})
		return list, then
	}
}

// firstWord completes the first argument alone.
func firstWord(words cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return words(cmd, args, begun)
	}
}

// idWords are the ids of a source.
func (c *command) idWords(of *idSource) func(string) completion {
	return func(begun string) completion {
		return func(yield func(word, about string) bool) {
			for one, err := range of.each(c, begun) {
				if err != nil || !yield(one.id, one.about) {
					return
				}
			}
		}
	}
}

// schemaWords are the names of the agents or workflows of a running writ.
func (c *command) schemaWords(kind string) func(string) completion {
	return func(string) completion {
		return func(yield func(word, about string) bool) {
			var rows []catalog.SchemaRow
			if c.get("/schemas/?kind="+url.QueryEscape(kind), &rows) != nil {
				return
			}
			for _, r := range rows {
				if !yield(r.Name, r.Kind) {
					return
				}
			}
		}
	}
}

// skillWords are the names of the skills that the servers of the data directory declare.
func (c *command) skillWords(string) completion {
	return func(yield func(word, about string) bool) {
		versions, _ := approval.ReadVersions(c.dir)
		for _, x := range versions {
			if x.Declared && !yield(x.Name, x.Description) {
				return
			}
		}
	}
}

// agentFlag declares the flag for the agent that is asked.
func (c *command) agentFlag(help string) *string {
	agent := c.Flags().String("agent", "", help+" (default: run_agent of the configuration, else the planner)")
	_ = c.RegisterFlagCompletionFunc("agent", c.completes(c.schemaWords(catalog.KindAgent))) // the flag exists
	return agent
}
