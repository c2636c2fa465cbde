package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/upkeep"
)

// blobs is where the configuration puts blobs.
func blobs(c config.Config) (datadir.BlobsAt, error) {
	at := datadir.BlobsAt{URL: c.Blobs, Credentials: c.BlobsCredentials, CA: c.BlobsCA}
	if err := at.Validate(); err != nil {
		return at, fmt.Errorf("blobs: %w", err)
	}
	return at, nil
}

func storageMove(std IO) *cobra.Command {
	var to datadir.BlobsAt
	cmd := &cobra.Command{
		Use: "move --to URL", Short: "Bring all artifacts to another store; writ must not run", Args: cobra.NoArgs,
		Long: "Copy what is kept of all tenants (cas://) from where the data directory has it to an\n" +
			"object store, or back into the directory (--to dir), and have the directory remember\n" +
			"the new place. Every digest is checked. What is in the old place stays there. One that\n" +
			"was cut off is begun again. Credentials of an S3 may be in the environment.",
	}
	stored(std, cmd, func(ctx context.Context, c config.Config, _ datadir.DocumentsAt, _ []string) (answer, error) {
		err := to.Validate()
		if to.URL == "" {
			err = errors.Join(err, errors.New("names no place"))
		}
		if err != nil {
			return answer{}, usage(fmt.Errorf("--to: %w", err))
		}
		m, err := upkeep.MoveBlobs(ctx, c.Data, to)
		return answer{data: m, text: fmt.Sprintf("%d blobs of %d bytes are in %s\n", m.Blobs, m.Bytes, m.To)}, err
	})
	cmd.Flags().StringVar(&to.URL, "to", "", "dir, or URL: nats://…, tls://… or s3://…")
	cmd.Flags().StringVar(&to.Credentials, "to-credentials", "", "file with the credentials for it")
	cmd.Flags().StringVar(&to.CA, "to-ca", "", "CA certificate file, PEM")
	mustGive(cmd, "to")
	return cmd
}
